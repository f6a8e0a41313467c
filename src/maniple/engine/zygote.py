"""Fork workers from one small process that has imported everything once."""

from __future__ import annotations

import array
import atexit
import contextlib
import errno
import os
import pickle
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from time import monotonic
from typing import Any, NoReturn

from maniple.core.child import die_with, python_module, start_child
from maniple.core.errors import ManipleError
from maniple.engine.lifetime import one_thread_each, run_and_exit
from maniple.engine.orphans import OWNER, Children, end_marked

START_SECONDS = 60.0
# A fork takes milliseconds, whatever the worker does afterwards.
FORK_SECONDS = 10.0
END_SECONDS = 2.0
MARK = "MANIPLE_ZYGOTE"
"""The variable by which everything that descends from a zygote is recognised."""
_PACKET = 1 << 16


class ZygoteLost(Exception):
    """The zygote has ended, or does not answer."""


class Zygote:
    """The parent's side: asks for workers, and receives how they ended.

    It is exec'd, so that it has no thread, no GL context and no torch to inherit; it forks, so
    that the 64th worker is ready in milliseconds and shares its memory with the first.

    Requests and replies are packets, which come whole or not at all, and carry a number: several
    threads may ask, and an interrupted request is told from the next.
    """

    def __init__(self, preload: Sequence[str]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.RLock()
        self._requests = 0
        self._statuses: dict[int, int] = {}
        self._is_closed = False
        self._mark = f"{MARK}={secrets.token_hex(8)}"
        fd = theirs.fileno()
        words = python_module("maniple.engine.zygote", str(fd), str(os.getpid()), *preload)
        self._process = _start(words, fd, self._mark)
        theirs.close()
        try:
            self._receive(monotonic() + START_SECONDS)
        except ZygoteLost:
            self.close()
            raise ManipleError(
                "The process that workers are forked from did not start. "
                f"Try: {sys.executable} -c 'import mujoco, gymnasium'"
            ) from None
        except BaseException:
            self.close()
            raise

    @property
    def is_alive(self) -> bool:
        """Whether workers can still be had from it."""
        return not self._is_closed and self._process.poll() is None

    def fork(self, fds: Sequence[int]) -> tuple[int, int]:
        """Start a worker with some descriptors; return its process id and a pidfd.

        Raises:
            ZygoteLost: No worker can be had from this one any more.
        """
        with self._lock:
            if self._is_closed:
                raise ZygoteLost("it is closed")
            self._requests += 1
            request = self._requests
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            deadline = monotonic() + FORK_SECONDS
            self._wait(select.POLLOUT, deadline)
            try:
                self._channel.sendmsg([pickle.dumps(request)], rights, socket.MSG_NOSIGNAL)
            except ConnectionError:
                raise ZygoteLost("it has ended") from None
            while True:
                message, received = self._receive(deadline)
                if message[0] == "failed" and message[1] == request:
                    raise OSError(message[2], os.strerror(message[2]))
                if message[0] != "forked":
                    continue
                if message[1] == request and not received:
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                if message[1] == request:
                    return message[2], received[0]
                # The answer to a request that was interrupted: nobody waits for that worker.
                for pidfd in received:
                    with contextlib.suppress(ProcessLookupError):
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                    os.close(pidfd)

    def status(self, pid: int, patience_s: float = 0.5) -> int | None:
        """Return how a worker ended, as os.waitstatus_to_exitcode; None if it is not known."""
        until = monotonic() + patience_s
        with self._lock:
            while pid not in self._statuses:
                if self._is_closed:
                    return None
                try:
                    self._receive(until)
                except (ZygoteLost, OSError):
                    return None
            return self._statuses.pop(pid)

    def close(self, patience_s: float = END_SECONDS) -> None:
        """End it, and with it every worker that is left and all that those have started."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            with contextlib.suppress(OSError):
                self._channel.send(b"", socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            self._channel.close()
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.returncode != 0:
                # It could not end what its workers had started.
                end_marked(self._mark)

    def _receive(self, deadline: float) -> tuple[tuple, list[int]]:
        """Receive one message; endings of workers are remembered."""
        self._wait(select.POLLIN, deadline)
        message, fds = _receive_packet(self._channel)
        if message is None:
            raise ZygoteLost("it has ended")
        if message[0] == "ended":
            self._statuses[message[1]] = message[2]
        return message, fds

    def _wait(self, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._channel, event)
        if not poll.poll(max(0.0, deadline - monotonic()) * 1000):
            raise ZygoteLost("it does not answer")


def _start(words: list[str], fd: int, mark: str) -> subprocess.Popen:
    name, _, value = mark.partition("=")
    environment = one_thread_each({**os.environ, name: value})
    try:
        # A group of its own: what ends ours leaves it time to end what its workers began. Not a
        # session: steps took 2.4 times as long (the kernel schedules sessions apart: autogroup).
        # SIGCONT wakes it when we end, even if it was stopped; it looks for its parent then.
        return start_child(
            words,
            signal.SIGCONT,
            pass_fds=(fd,),
            env=environment,
            stdin=subprocess.DEVNULL,
            process_group=0,
        )
    except OSError as error:
        raise ManipleError(
            f"Cannot start a process: {error.strerror}. Is a limit reached?"
        ) from None


class _Shared:
    """One zygote for all engines of this process; it ends with the last of them."""

    def __init__(self) -> None:
        self._forget()

    def borrow(self, preload: Sequence[str]) -> Zygote:
        """Return the zygote; start one if none is running."""
        if self._owner != os.getpid():
            # Forked by the user's own program: the parent's zygote is none of our business.
            self._forget()
        with self._lock:
            zygote = self._living(preload)
            self._users += 1
            return zygote

    def renew(self, preload: Sequence[str], lost: Zygote | None = None) -> Zygote:
        """Return a running zygote to an engine that has borrowed one; `lost` does not answer."""
        with self._lock:
            if lost is not None and lost is self._zygote:
                lost.close(patience_s=0.0)
            return self._living(preload)

    def give_back(self) -> None:
        """End the zygote if no other engine uses it."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._zygote is not None:
                zygote, self._zygote = self._zygote, None
                zygote.close()

    def end(self) -> None:
        """End it even if engines use it: the process is about to exit."""
        if self._owner == os.getpid() and self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _living(self, preload: Sequence[str]) -> Zygote:
        if self._zygote is not None and not self._zygote.is_alive:
            self._zygote.close()
            self._zygote = None
        if self._zygote is None:
            self._zygote = Zygote(preload)
        return self._zygote

    def _forget(self) -> None:
        self._owner = os.getpid()
        self._zygote: Zygote | None = None
        self._users = 0
        self._lock = threading.RLock()


SHARED = _Shared()
atexit.register(SHARED.end)


def _receive_packet(channel: socket.socket) -> tuple[Any, list[int]]:
    room = socket.CMSG_SPACE(64 * array.array("i").itemsize)
    try:
        data, ancillary, _, _ = channel.recvmsg(_PACKET, room, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None, []
    fds = array.array("i")
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(body[: len(body) - len(body) % fds.itemsize])
    return pickle.loads(data) if data else None, list(fds)  # noqa: S301  (our own parent or child)


def _serve(fd: int, parent: int, preload: Sequence[str]) -> None:
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
    for end in (wake, bell):
        end.setblocking(False)
    signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGCONT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    children = Children()
    _reply(channel, ("ready", os.getpid()))
    while os.getppid() == parent:
        patience = 0.05 if children.is_busy else None
        readable, _, _ = select.select([channel, wake], [], [], patience)
        if wake in readable or children.is_busy:
            if wake in readable and signal.SIGTERM in wake.recv(4096):
                break
            for pid, status in children.bury():
                _reply(channel, ("ended", pid, status))
        if channel in readable:
            request, fds = _receive_packet(channel)
            if request is None:
                break
            try:
                pid = os.fork()
                if pid == 0:
                    _become_worker((channel, wake, bell), fds)
                children.add(pid)
                fds.append(os.pidfd_open(pid))
                _reply(channel, ("forked", request, pid), fds[-1:])
            except OSError as error:
                # A limit of processes or descriptors: the parent learns of it, and goes on.
                _reply(channel, ("failed", request, error.errno))
            for used in fds:
                os.close(used)
    children.end_all(END_SECONDS / 2)
    os._exit(0)


def _reply(channel: socket.socket, message: tuple, fds: Sequence[int] = ()) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    # A parent that has ended is noticed by the loop.
    with contextlib.suppress(ConnectionError):
        channel.sendmsg([pickle.dumps(message)], rights, socket.MSG_NOSIGNAL)


def _become_worker(sockets: Sequence[socket.socket], fds: list[int]) -> NoReturn:
    def live() -> None:
        die_with(os.getppid())
        # All that an environment starts is in this group, unless it leaves it.
        with contextlib.suppress(PermissionError):
            os.setpgid(0, 0)
        os.environ[OWNER] = str(os.getpid())
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGCONT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for end in sockets:
            end.close()
        from maniple.engine.worker import work

        work(fds)

    run_and_exit(live)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
