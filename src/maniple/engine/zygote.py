"""Fork workers from one small process that has imported everything once."""

from __future__ import annotations

import array
import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from time import monotonic
from typing import NoReturn

from maniple.core.child import die_with, start_child
from maniple.core.errors import ManipleError
from maniple.engine.channel import ChannelTimeout, receive_message, send_message
from maniple.engine.lifetime import one_thread_each, run_and_exit

START_SECONDS = 60.0


class Zygote:
    """The parent's side: asks for workers, and receives how they ended.

    It is exec'd, so that it has no thread, no GL context and no torch to inherit; it forks, so
    that the 64th worker is ready in milliseconds and shares its memory with the first.
    """

    def __init__(self, preload: Sequence[str]) -> None:
        self._channel, theirs = socket.socketpair()
        self._statuses: dict[int, int] = {}
        words = [sys.executable, "-m", __name__, str(theirs.fileno()), *preload]
        self._process = _start(words, theirs.fileno())
        theirs.close()
        try:
            receive_message(self._channel, monotonic() + START_SECONDS)
        except (EOFError, ChannelTimeout):
            self.close()
            raise ManipleError(
                "The process that workers are forked from did not start. "
                f"Try: {sys.executable} -c 'import mujoco, gymnasium'"
            ) from None

    @property
    def is_alive(self) -> bool:
        """Whether workers can still be had from it."""
        return self._process.poll() is None

    def fork(self, job: bytes, fds: Sequence[int]) -> int:
        """Start a worker with a pickled job and some descriptors; return its process id."""
        self._read_statuses()
        send_message(self._channel, ("fork", len(job)), monotonic() + START_SECONDS)
        _send_with_fds(self._channel, job, fds)
        while True:
            kind, value, *rest = receive_message(self._channel, monotonic() + START_SECONDS)
            if kind == "forked":
                return value
            self._statuses[value] = rest[0]

    def status(self, pid: int, patience_s: float = 0.5) -> int | None:
        """Return how a worker ended, as os.waitstatus_to_exitcode; None if it is not known."""
        until = monotonic() + patience_s
        while pid not in self._statuses:
            try:
                kind, value, *rest = receive_message(self._channel, until)
            except (EOFError, ChannelTimeout):
                return None
            if kind == "ended":
                self._statuses[value] = rest[0]
        return self._statuses.pop(pid)

    def close(self) -> None:
        """End it, and with it every worker that is left."""
        self._channel.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _read_statuses(self) -> None:
        while True:
            try:
                kind, value, *rest = receive_message(self._channel, monotonic())
            except (EOFError, ChannelTimeout):
                return
            if kind == "ended":
                self._statuses[value] = rest[0]


def _start(words: list[str], fd: int) -> subprocess.Popen:
    environment = one_thread_each(dict(os.environ))
    try:
        return start_child(words, pass_fds=(fd,), env=environment, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise ManipleError(
            f"Cannot start a process: {error.strerror}. Is a limit reached?"
        ) from None


class _Shared:
    """One zygote for all engines of this process; it ends with the last of them."""

    def __init__(self) -> None:
        self._zygote: Zygote | None = None
        self._users = 0
        self._lock = threading.Lock()

    def borrow(self, preload: Sequence[str]) -> Zygote:
        """Return the zygote; start one if none is running."""
        with self._lock:
            self._users += 1
            return self._living(preload)

    def renew(self, preload: Sequence[str]) -> Zygote:
        """Return a running zygote to an engine that has borrowed one already."""
        with self._lock:
            return self._living(preload)

    def give_back(self) -> None:
        """End the zygote if no other engine uses it."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._zygote is not None:
                self._zygote.close()
                self._zygote = None

    def end(self) -> None:
        """End it even if engines use it: the process is about to exit."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _living(self, preload: Sequence[str]) -> Zygote:
        if self._zygote is not None and not self._zygote.is_alive:
            self._zygote.close()
            self._zygote = None
        if self._zygote is None:
            try:
                self._zygote = Zygote(preload)
            except BaseException:
                self._users -= 1
                raise
        return self._zygote


SHARED = _Shared()
atexit.register(SHARED.end)


def _send_with_fds(channel: socket.socket, data: bytes, fds: Sequence[int]) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
    sent = channel.sendmsg([data], rights)
    while sent < len(data):
        sent += channel.send(data[sent:])


def _receive_with_fds(channel: socket.socket, size: int) -> tuple[bytes, list[int]]:
    room = socket.CMSG_SPACE(64 * array.array("i").itemsize)
    data, ancillary, _, _ = channel.recvmsg(size, room)
    fds = array.array("i")
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    while len(data) < size:
        data += channel.recv(size - len(data))
    return data, list(fds)


def _serve(fd: int, preload: Sequence[str]) -> None:
    """Run the zygote: import, then fork on request until the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import gc
    import importlib

    for module in preload:
        importlib.import_module(module)
    gc.collect()
    # The collector never touches objects made so far, so that workers share their memory.
    gc.freeze()
    channel = socket.socket(fileno=fd)
    wake, bell = socket.socketpair()
    bell.setblocking(False)
    signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    send_message(channel, ("ready", os.getpid()))
    import select

    while True:
        readable, _, _ = select.select([channel, wake], [], [])
        if wake in readable:
            wake.recv(4096)
            _report_ended(channel)
        if channel in readable:
            try:
                _, size = receive_message(channel)
                job, fds = _receive_with_fds(channel, size)
            except EOFError:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                _become_worker(channel, (wake, bell), job, fds)
            for received in fds:
                os.close(received)
            send_message(channel, ("forked", pid))


def _report_ended(channel: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        try:
            send_message(channel, ("ended", pid, os.waitstatus_to_exitcode(status)))
        except EOFError:
            os._exit(0)


def _become_worker(channel: socket.socket, bells: tuple, job: bytes, fds: list[int]) -> NoReturn:
    def live() -> None:
        die_with(os.getppid())
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        channel.close()
        for bell in bells:
            bell.close()
        from maniple.engine.worker import work

        work(job, fds)

    run_and_exit(live)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), sys.argv[2:])
