"""Give the learner as many threads as pay off right now."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import torch

Told = TypeVar("Told")
TRIAL = 6
"""Updates that are timed with each number of threads."""
PERIOD = 300
"""Updates until the numbers are compared again."""


class Threads:
    """Runs updates on one thread or on all, whichever is faster at the moment.

    With a busy neighbour two threads wait for each other and are slower than one: on a shared
    machine the better number changes by the minute. The numbers learned are the same.
    """

    def __init__(self, most: int, fixed: int | None = None) -> None:
        self._choices = [fixed] if fixed else sorted({1, most})
        self._spent = dict.fromkeys(self._choices, 0.0)
        self._count = 0
        self._now = self._choices[-1]
        torch.set_num_threads(self._now)

    def run(self, update: Callable[[], Told]) -> Told:
        """Run one update."""
        if len(self._choices) == 1:
            return update()
        at = self._count % PERIOD
        self._count += 1
        trials = TRIAL * len(self._choices)
        if at < trials:
            # In turns, so that a burst of the neighbour's hits both.
            self._use(self._choices[at % len(self._choices)])
            began = perf_counter()
            told = update()
            self._spent[self._now] += perf_counter() - began
            return told
        if at == trials:
            self._use(min(self._spent, key=lambda n: self._spent[n]))
            self._spent = dict.fromkeys(self._choices, 0.0)
        return update()

    def _use(self, threads: int) -> None:
        if threads != self._now:
            self._now = threads
            torch.set_num_threads(threads)
