"""Send numbered messages between a parent and its own workers: infos, calls, tracebacks."""

from __future__ import annotations

import pickle
import select
import socket
import struct
from time import monotonic
from typing import Any

_HEAD = struct.Struct("<QQ")
_SMALL = 1 << 16
_FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class ChannelTimeout(Exception):
    """No whole message came or went before the deadline."""


class Channel:
    """One end of a stream of messages, each with the number of the order that it belongs to.

    An interrupt (Ctrl-C) may leave messages behind that nobody read: whoever waits for one number
    drops the older ones. It may also hit in the middle of a message; then `is_whole` is False, and
    the stream is of no more use.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.is_whole = True
        """Whether the stream is between two messages, so that the next one can be told."""
        self._last: tuple[int, bytearray] = (-1, bytearray())
        """Number and body of the last message: whoever was interrupted asks for it again."""

    def fileno(self) -> int:
        """Return the descriptor, for select and its like."""
        return self._end.fileno()

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def send(self, message: Any, number: int = 0, deadline: float | None = None) -> None:
        """Send one message; `deadline` is on the monotonic clock.

        Raises:
            EOFError: The other process has closed its end.
            ChannelTimeout: Not all of it could be sent in time.
        """
        self.send_packed(pack(message), number, deadline)

    def send_packed(self, body: bytes, number: int = 0, deadline: float | None = None) -> None:
        """Send one message that was packed before."""
        head = _HEAD.pack(len(body), number)
        self.is_whole = False
        for part in (head + body,) if len(body) < _SMALL else (head, body):
            self._send_all(memoryview(part), deadline)
        self.is_whole = True

    def receive(self, number: int | None = None, deadline: float | None = None) -> Any:
        """Receive the message with a number (None: any), dropping those of earlier orders.

        Both ends belong to one user on one machine, started by one of them: nothing that comes from
        a disk or a network is unpickled here.

        Raises:
            EOFError: The other process has closed its end.
            ChannelTimeout: No whole message came in time.
        """
        while number is None or self._last[0] != number:
            # Whoever waits for a message to begin may be interrupted: nothing is lost yet.
            self._wait(select.POLLIN, deadline)
            self.is_whole = False
            size, found = _HEAD.unpack(self._receive_all(_HEAD.size, deadline))
            self._last = (found, self._receive_all(size, deadline))
            self.is_whole = True
            if number is None:
                break
        return pickle.loads(self._last[1])  # noqa: S301

    def send_fd(self, fd: int, deadline: float | None = None) -> None:
        """Send a descriptor."""
        self._wait(select.POLLOUT, deadline)
        try:
            socket.send_fds(self._end, [b"d"], [fd])
        except ConnectionError:
            raise EOFError("the other process has closed its end") from None

    def receive_fd(self) -> int:
        """Receive a descriptor."""
        _, fds, _, _ = socket.recv_fds(self._end, 1, 1)
        if not fds:
            raise EOFError("the other process has closed its end")
        return fds[0]

    def _send_all(self, view: memoryview, deadline: float | None) -> None:
        while view:
            try:
                view = view[self._end.send(view, _FLAGS) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
            except ConnectionError:
                raise EOFError("the other process has closed its end") from None

    def _receive_all(self, size: int, deadline: float | None) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            try:
                count = self._end.recv_into(view, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except ConnectionError:
                count = 0
            if not count:
                raise EOFError("the other process has closed its end")
            view = view[count:]
        return data

    def _wait(self, event: int, deadline: float | None) -> None:
        left = None if deadline is None else max(0.0, deadline - monotonic()) * 1000
        poll = select.poll()
        poll.register(self._end, event)
        if not poll.poll(left):
            raise ChannelTimeout("the other process neither sends nor takes a message")


def pack(message: Any) -> bytes:
    """Return a message as it is sent."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
