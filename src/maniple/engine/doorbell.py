"""Let two processes wake each other: a bounded spin that yields the core, then a sleep."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from time import perf_counter_ns

# Long enough for a quick environment to answer, short enough to cost nothing when it does not.
# A spin must yield: on shared cores a busy wait keeps the other process from running.
SPIN_NS = 200_000
# Longer waits sleep in the kernel: a wake-up costs 0.1 ms, in a virtual machine 0.3.
MOST_SPIN_NS = 3_000_000
# No wake-up is missed on the machines that we know; if one is, it costs this long.
RECHECK_S = 0.5
TOKEN = b"."


_latch = threading.Lock()


def fence() -> None:
    """Keep a store before it and a load after it in that order.

    The writer of a word must check afterwards whether its reader sleeps, and a reader that goes to
    sleep must read the word once more. Taking a free lock is an atomic instruction (50 ns).
    """
    with _latch:
        pass


def ring(wake: socket.socket) -> None:
    """Send a wake-up; if the socket is full, the reader has enough of them."""
    with contextlib.suppress(BlockingIOError, ConnectionError):
        wake.send(TOKEN, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def drain(wake: socket.socket) -> bool:
    """Take all wake-ups out; return False if the other process has closed its end."""
    try:
        while True:
            if not wake.recv(4096, socket.MSG_DONTWAIT):
                return False
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


def await_change(words: memoryview, at: int, old: int, sleeps_at: int, wake: socket.socket) -> int:
    """Wait in a worker until a word differs from `old`; return it.

    Raises:
        EOFError: The parent has ended.
    """
    yield_core = os.sched_yield
    until = perf_counter_ns() + SPIN_NS
    while True:
        for _ in range(16):
            value = words[at]
            if value != old:
                return value
            yield_core()
        if perf_counter_ns() > until:
            break
    while True:
        words[sleeps_at] = 1
        fence()
        value = words[at]
        if value == old:
            select.select([wake], [], [], RECHECK_S)
            if not drain(wake):
                raise EOFError("the parent has ended")
            value = words[at]
        words[sleeps_at] = 0
        if value != old:
            return value
