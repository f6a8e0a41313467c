"""Workers that are started before they are needed."""

from __future__ import annotations

import select
from collections.abc import Callable
from time import monotonic

from maniple.core.errors import ManipleError
from maniple.core.group import Contract
from maniple.engine.channel import ChannelTimeout
from maniple.engine.launcher import WorkerProcess

GRACE_S = 2.0
MOST_FAILED = 3
"""Spares that may fail one after the other: the next would fail, too."""


class Spares:
    """Processes whose environments are built, and that have no rows yet.

    A simulator that takes seconds to start makes every other row wait for a replacement; a spare
    is there at once.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: list[WorkerProcess] = []
        self._failed = 0

    def fill(self, start: Callable[[], WorkerProcess]) -> None:
        """Start as many as are missing, without waiting for them."""
        while len(self._waiting) < self._count and self._failed < MOST_FAILED:
            try:
                self._waiting.append(start())
            except ManipleError:
                # To have no spare is no fault; a replacement is started when it is needed.
                self._failed += 1

    def take(self, contract: Contract) -> WorkerProcess | None:
        """Return one whose environments are built; None: there is none yet."""
        for process in list(self._waiting):
            if not select.select([process.channel], [], [], 0)[0]:
                continue
            self._waiting.remove(process)
            if _has_built(process, contract):
                self._failed = 0
                return process
            self._failed += 1
            end(process)
        return None

    def close(self) -> None:
        """End all of them."""
        for process in self._waiting:
            # It waits for its rows, and ends when it hears that there will be none.
            process.channel.close()
        while self._waiting:
            end(self._waiting.pop())


def end(process: WorkerProcess) -> None:
    """Give a worker a moment to end by itself, then kill it."""
    if not process.has_exited(GRACE_S):
        process.kill()
        process.has_exited(GRACE_S)
    process.close()


def _has_built(process: WorkerProcess, contract: Contract) -> bool:
    try:
        kind, found = process.channel.receive(deadline=monotonic() + GRACE_S)
    except (EOFError, ChannelTimeout):
        return False
    return kind == "built" and found.observation == contract.observation
