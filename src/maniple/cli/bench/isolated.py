"""Run a contender in a process group of its own, where it can hang or die without harm to others.

Between its turns the whole group is stopped: a peer that busy-waits must not slow down the others.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from time import monotonic, sleep
from typing import Any

import psutil

from maniple.cli.bench.contender import Contender
from maniple.core.child import die_with, python_module, start_child

START_S = 120.0
CLOSE_S = 5.0
SLACK_S = 20.0
"""How much longer than asked a turn may take before it counts as hung."""


class IsolatedFailed(Exception):
    """A contender that broke, died or hung."""


class Isolated:
    """A contender in a process of its own, measured in turns, and ended with its children."""

    def __init__(self, contender: Contender) -> None:
        self._received = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        words = python_module("maniple.cli.bench.isolated", json.dumps(contender.as_options()))
        # A group of its own, to stop and kill with its children. It stays in our session: if we are
        # killed, the kernel wakes its stopped members.
        self._process = start_child(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            process_group=0,
        )

    def wait_ready(self, seconds: float = START_S) -> None:
        """Wait until the contender is built, and stop it until its first turn."""
        self._receive(monotonic() + seconds, "to start")
        self._signal(signal.SIGSTOP)

    def measure(self, steps: int, seconds: float) -> float:
        """Let it step for one turn; return its env-steps per second."""
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps([steps, seconds]).encode() + b"\n")
            return float(self._receive(monotonic() + seconds + SLACK_S, "for a turn"))
        except BrokenPipeError:
            raise IsolatedFailed(f"it died: {self._last_error_line()}") from None
        finally:
            self._signal(signal.SIGSTOP)

    def memory_mb(self) -> float | None:
        """Return the memory of the whole group, shared pages counted once; None where unknown."""
        try:
            here = psutil.Process(self._process.pid)
            found = [p.memory_full_info() for p in (here, *here.children(recursive=True))]
            return sum(one.pss for one in found) / 1e6
        except (psutil.Error, AttributeError):
            return None

    def ask_to_end(self) -> None:
        """Ask it to end; `close` waits for that."""
        self._signal(signal.SIGCONT)
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def close(self, seconds: float = CLOSE_S) -> None:
        """End it and everything that it started."""
        self.ask_to_end()
        end = monotonic() + seconds
        # Kill the group before the process is reaped: after that its id may belong to another one.
        while self._is_alive() and monotonic() < end:
            sleep(0.01)
        self._signal(signal.SIGKILL)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()

    def _is_alive(self) -> bool:
        if self._process.returncode is not None:
            return False
        options = os.WEXITED | os.WNOWAIT | os.WNOHANG
        return os.waitid(os.P_PID, self._process.pid, options) is None

    def _signal(self, number: int) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _receive(self, deadline: float, purpose: str) -> Any:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._received:
            left = deadline - monotonic()
            if left <= 0:
                raise IsolatedFailed(f"it took too long {purpose}")
            # Its children may keep the pipe open after it died: check the process too.
            if select.select([fd], [], [], min(left, 0.5))[0]:
                part = os.read(fd, 65536)
                self._received += part
                if not part:
                    raise IsolatedFailed(f"it died: {self._last_error_line()}")
            elif not self._is_alive():
                raise IsolatedFailed(f"it died: {self._last_error_line()}")
        line, _, self._received = self._received.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise IsolatedFailed(answer["error"])
        return answer["rate"]

    def _last_error_line(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it printed nothing"


def close_all(processes: Iterable[Isolated]) -> None:
    """End many at the same time."""
    processes = list(processes)
    for process in processes:
        process.ask_to_end()
    for process in processes:
        process.close()


def _serve(options: str) -> None:
    """Run in the child process: build the contender, then answer each line with a line."""
    _tie_forked_children()
    # Libraries may print to stdout, which must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**content: Any) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    try:
        contender = Contender(**json.loads(options)).build()
        answer(rate=None)
        for line in sys.stdin:
            answer(rate=contender.measure(*json.loads(line)))
        contender.close()
    except Exception as error:
        first = str(error).strip().splitlines()
        answer(error=f"{type(error).__name__}: {first[0] if first else ''}")
        raise


def _tie_forked_children() -> None:
    """End forked workers with this process: those of peers would outlive it when it is killed."""
    parent = [os.getpid()]
    os.register_at_fork(
        before=lambda: parent.__setitem__(0, os.getpid()),
        after_in_child=lambda: die_with(parent[0]),
    )


if __name__ == "__main__":
    _serve(sys.argv[1])
