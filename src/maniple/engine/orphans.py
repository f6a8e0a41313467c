"""End what environments have started, when their worker ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

_PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 0.3
"""How long a process that was asked to end may take."""
OWNER = "MANIPLE_WORKER"
"""The variable in which a worker leaves its process id to all that it starts."""


class Children:
    """The workers of a zygote, and what they leave behind.

    A process whose parent ends becomes a child of the zygote. It is known by its group, or by the
    variable that it inherited, whose it was; it ends with its worker: asked first, since an X
    server has files to remove, and killed soon after.
    """

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._workers: set[int] = set()
        self._ended: set[int] = set()
        self._asked: dict[int, float] = {}
        """Orphans that were asked to end, and when."""

    @property
    def is_busy(self) -> bool:
        """Whether `bury` has to be called again soon, whatever happens."""
        return bool(self._asked)

    def add(self, pid: int) -> None:
        """Note a worker that was just forked."""
        # The worker does the same: whoever is first.
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        self._workers.add(pid)
        self._ended.discard(pid)

    def bury(self) -> list[tuple[int, int]]:
        """Take note of processes that ended; return the workers among them, and how they did."""
        found = []
        for pid in _ended_children():
            is_worker = pid in self._workers
            if is_worker:
                # Before it is waited for, so that no other group can have its number.
                _signal_group(pid, signal.SIGTERM)
                self._workers.discard(pid)
                self._ended.add(pid)
            _, status = os.waitpid(pid, 0)
            self._asked.pop(pid, None)
            if is_worker:
                found.append((pid, os.waitstatus_to_exitcode(status)))
        self._end_orphans()
        return found

    def end_all(self, seconds: float) -> None:
        """End all workers and everything that they started."""
        for pid in self._workers:
            _signal_group(pid, signal.SIGTERM)
            _signal(pid, signal.SIGKILL)
        self._ended |= self._workers
        self._workers.clear()
        until = monotonic() + seconds
        while (left := _children()) and monotonic() < until:
            self._end(left)
            for pid in _ended_children():
                os.waitpid(pid, 0)
            sleep(0.001)

    def _end_orphans(self) -> None:
        if self._ended:
            # What they have started in turn comes to us when they end, and with it a SIGCHLD.
            strays = [pid for pid in _children() if pid not in self._workers]
            self._end([pid for pid in strays if _owner(pid) in self._ended])

    def _end(self, pids: list[int]) -> None:
        """Ask processes to end; kill those that were asked a while ago."""
        now = monotonic()
        for pid in pids:
            if pid not in self._asked:
                self._asked[pid] = now
                _signal(pid, signal.SIGTERM)
                _signal(pid, signal.SIGCONT)
            elif now - self._asked[pid] > GRACE_S:
                _signal(pid, signal.SIGKILL)


def end_marked(mark: str) -> None:
    """End every process that has a variable, 'NAME=value', in its environment."""
    wanted = mark.encode()
    for _ in range(3):
        found = False
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                found |= _end_if_marked(int(entry.name), wanted)
        if not found:
            return
        sleep(0.01)


def _end_if_marked(pid: int, mark: bytes) -> bool:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # Read while the pidfd is held: the number cannot have become another's.
        if mark not in _environment(pid):
            return False
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        return True
    except OSError:
        return False
    finally:
        os.close(pidfd)


def _ended_children() -> Iterator[int]:
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None:
            return
        yield found.si_pid


def _children() -> list[int]:
    me = os.getpid()
    try:
        return [int(word) for word in Path(f"/proc/self/task/{me}/children").read_text().split()]
    except OSError:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        return [pid for pid in pids if _ppid(pid) == me]


def _ppid(pid: int) -> int:
    try:
        # After the name, which is in brackets and may hold anything: state, parent.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def _owner(pid: int) -> int:
    """Return the worker that a process belongs to, -1 if that is not known."""
    for variable in _environment(pid):
        name, _, value = variable.partition(b"=")
        if name == OWNER.encode() and value.isdigit():
            return int(value)
    try:
        return os.getpgid(pid)
    except OSError:
        return -1


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _signal_group(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
