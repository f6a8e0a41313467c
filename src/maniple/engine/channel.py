"""Send messages between a parent and its own workers: infos, calls, tracebacks."""

from __future__ import annotations

import pickle
import select
import socket
import struct
from time import monotonic
from typing import Any

_HEAD = struct.Struct("<Q")


class ChannelTimeout(Exception):
    """No whole message came before the deadline."""


def send_message(channel: socket.socket, message: Any, deadline: float | None = None) -> None:
    """Send one message."""
    send_packed(channel, pack(message), deadline)


def pack(message: Any) -> bytes:
    """Return a message as it is sent."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(len(body)) + body


def receive_message(channel: socket.socket, deadline: float | None = None) -> Any:
    """Receive one message; `deadline` is on the monotonic clock.

    Both ends belong to one user on one machine, started by one of them: nothing that comes from
    a disk or a network is unpickled here.

    Raises:
        EOFError: The other process has closed its end.
        ChannelTimeout: No whole message came in time.
    """
    (size,) = _HEAD.unpack(_receive(channel, _HEAD.size, deadline))
    return pickle.loads(_receive(channel, size, deadline))  # noqa: S301


def send_packed(channel: socket.socket, data: bytes, deadline: float | None = None) -> None:
    """Send one message that was packed before."""
    view = memoryview(data)
    while view:
        _wait([], [channel], deadline)
        try:
            sent = channel.send(view, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            continue
        except ConnectionError:
            raise EOFError("the other process has closed its end") from None
        view = view[sent:]


def _receive(channel: socket.socket, size: int, deadline: float | None) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        _wait([channel], [], deadline)
        try:
            part = channel.recv(min(1 << 20, size - len(parts)), socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        except ConnectionError:
            part = b""
        if not part:
            raise EOFError("the other process has closed its end")
        parts += part
    return bytes(parts)


def _wait(reads: list, writes: list, deadline: float | None) -> None:
    left = None if deadline is None else max(0.0, deadline - monotonic())
    poll = select.poll()
    for channel in reads:
        poll.register(channel, select.POLLIN)
    for channel in writes:
        poll.register(channel, select.POLLOUT)
    if not poll.poll(None if left is None else left * 1000):
        raise ChannelTimeout
