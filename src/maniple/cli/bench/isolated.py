"""Give a contender a process group of its own, in which it may hang or die alone.

Between its turns the whole group is stopped: a peer that busy-waits takes nothing from the others.
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

from maniple.cli.bench.contender import Contender
from maniple.core.child import python_module

START_S = 120.0
CLOSE_S = 5.0
SLACK_S = 20.0
"""How much longer than asked a turn may take before it counts as hung."""


class IsolatedFailed(Exception):
    """A contender that broke, died or hung."""


class Isolated:
    """The outside of a contender's process: start it, give it turns, and sweep up after it."""

    def __init__(self, who: Contender) -> None:
        self.who = who
        self._said = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        words = python_module("maniple.cli.bench.isolated", json.dumps(who.as_options()))
        # A group in our session: when we are killed, the kernel wakes its stopped members.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            process_group=0,
        )

    def wait_ready(self, seconds: float = START_S) -> None:
        """Return when it is built, and stop it until its turn."""
        self._hear(monotonic() + seconds, "to start")
        self._signal(signal.SIGSTOP)

    def turn(self, steps: int, seconds: float) -> float:
        """Let it step; return its env-steps per second."""
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps([steps, seconds]).encode() + b"\n")
            return float(self._hear(monotonic() + seconds + SLACK_S, "for a turn"))
        except BrokenPipeError:
            raise IsolatedFailed(f"it died: {self._last_words()}") from None
        finally:
            self._signal(signal.SIGSTOP)

    def dismiss(self) -> None:
        """Ask it to end; `close` waits for that."""
        self._signal(signal.SIGCONT)
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def close(self, seconds: float = CLOSE_S) -> None:
        """End it and everything that it started."""
        self.dismiss()
        end = monotonic() + seconds
        # Not reaped before the group is killed: until then its number cannot be given away.
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

    def _hear(self, deadline: float, what: str) -> Any:
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        while b"\n" not in self._said:
            left = deadline - monotonic()
            if left <= 0:
                raise IsolatedFailed(f"it took too long {what}")
            # A child may keep the pipe open after its parent's death: look at the parent too.
            if select.select([fd], [], [], min(left, 0.5))[0]:
                part = os.read(fd, 65536)
                self._said += part
                if not part:
                    raise IsolatedFailed(f"it died: {self._last_words()}")
            elif not self._is_alive():
                raise IsolatedFailed(f"it died: {self._last_words()}")
        line, _, self._said = self._said.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise IsolatedFailed(answer["error"])
        return answer["rate"]

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def close_all(stands: Iterable[Isolated]) -> None:
    """End many at the same time."""
    stands = list(stands)
    for stand in stands:
        stand.dismiss()
    for stand in stands:
        stand.close()


def _serve(words: str) -> None:
    """Run inside of the process: build the contender, then a line in, a line out."""
    from maniple.core.child import die_with

    die_with(os.getppid())
    _let_children_die_too()
    # Whatever a library prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**what: Any) -> None:
        answers.write(json.dumps(what) + "\n")
        answers.flush()

    try:
        measured = Contender(**json.loads(words)).measure()
        answer(rate=None)
        for line in sys.stdin:
            answer(rate=measured.turn(*json.loads(line)))
        measured.close()
    except Exception as error:
        first = str(error).strip().splitlines()
        answer(error=f"{type(error).__name__}: {first[0] if first else ''}")
        raise


def _let_children_die_too() -> None:
    """Forked workers of peers outlive a killed parent otherwise."""
    from maniple.core.child import die_with

    parent = [os.getpid()]
    os.register_at_fork(
        before=lambda: parent.__setitem__(0, os.getpid()),
        after_in_child=lambda: die_with(parent[0]),
    )


if __name__ == "__main__":
    _serve(sys.argv[1])
