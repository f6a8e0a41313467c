"""Start worker processes from the recipe of one engine."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
from dataclasses import dataclass

from maniple.core.errors import ManipleError
from maniple.engine.channel import Channel
from maniple.engine.worker import Job
from maniple.engine.zygote import SHARED, ZygoteLost

PRELOAD = ("numpy", "gymnasium", "cloudpickle", "maniple.engine.worker")


@dataclass(frozen=True)
class WorkerProcess:
    """A process that was started, and the descriptors by which it is reached."""

    pid: int
    pidfd: int
    channel: Channel
    wake: socket.socket
    crash_log: int

    def has_exited(self, patience_s: float = 0.0) -> bool:
        """Whether it has ended, waiting for that a little."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(patience_s * 1000))

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Send a signal through the pidfd: never to another process that got the same id."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, signum)

    def stack_dump(self) -> str:
        """Read the stack that a crash or STACK_SIGNAL left in the crash log."""
        size = os.fstat(self.crash_log).st_size
        return os.pread(self.crash_log, min(size, 1 << 16), 0).decode(errors="replace").strip()

    def close(self) -> None:
        """Close every descriptor."""
        self.channel.close()
        self.wake.close()
        os.close(self.pidfd)
        os.close(self.crash_log)


class Launcher:
    """A recipe, and the zygote that workers are forked from."""

    def __init__(self, recipe: bytes, preload: tuple[str, ...]) -> None:
        # Once for all workers, and whatever its size: only the descriptor is sent.
        self._recipe_fd = _memory_file("maniple-recipe", recipe)
        self._preload = (*PRELOAD, *preload)
        try:
            self._zygote = SHARED.borrow(self._preload)
        except BaseException:
            os.close(self._recipe_fd)
            raise

    def start(self, job: Job, slab_fd: int | None = None) -> WorkerProcess:
        """Start a worker; it sends 'ready' when it can take orders.

        Without a slab it sends 'built' before, and waits for the rest of its job.
        """
        ours: list[socket.socket] = []
        theirs: list[socket.socket] = []
        crash_log = job_fd = pidfd = -1
        try:
            job_fd = _memory_file("maniple-job", pickle.dumps(job))
            for _ in range(2):
                one, other = socket.socketpair()
                ours.append(one)
                theirs.append(other)
            crash_log = os.memfd_create("maniple-crash-log", os.MFD_CLOEXEC)
            fds = [job_fd, self._recipe_fd, *(end.fileno() for end in theirs), crash_log]
            pid, pidfd = self._fork(fds if slab_fd is None else [*fds, slab_fd])
            return WorkerProcess(pid, pidfd, Channel(ours[0]), ours[1], crash_log)
        except BaseException as error:
            # A worker that was forked before an interrupt ends when these are closed.
            for fd in (crash_log, pidfd):
                if fd >= 0:
                    os.close(fd)
            for end in ours:
                end.close()
            if isinstance(error, OSError):
                raise ManipleError(
                    f"Cannot start worker {job.worker}: {error.strerror}. "
                    "Raise the limit of open files ('ulimit -n 4096') or use fewer workers."
                ) from None
            raise
        finally:
            for end in theirs:
                end.close()
            if job_fd >= 0:
                os.close(job_fd)

    def _fork(self, fds: list[int]) -> tuple[int, int]:
        """Have a worker forked, by a new zygote if the present one has ended or was stopped."""
        if not self._zygote.is_alive:
            self._zygote = SHARED.renew(self._preload)
        try:
            return self._zygote.fork(fds)
        except ZygoteLost as error:
            self._zygote = SHARED.renew(self._preload, self._zygote)
            try:
                return self._zygote.fork(fds)
            except ZygoteLost:
                raise ManipleError(
                    f"The process that workers are forked from was lost twice: {error}."
                ) from None

    def exit_status(self, pid: int) -> int | None:
        """Return how a worker ended, once the zygote has ended what it had started."""
        return self._zygote.status(pid)

    @property
    def is_zygote_alive(self) -> bool:
        """Whether the process that workers are forked from still runs."""
        return self._zygote.is_alive

    def close(self) -> None:
        """Let go of the recipe and the zygote."""
        os.close(self._recipe_fd)
        SHARED.give_back()


def _memory_file(name: str, data: bytes) -> int:
    """Return the descriptor of a file without a name that holds some bytes."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        return fd
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise ManipleError(
                f"Cannot reserve {len(data) / 2**20:.0f} MB of memory: {error.strerror}."
            ) from None
        raise
