"""The two engines of this process: native steps all rows at once, serial one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maniple.core.group import Contract, Recipe
from maniple.core.rank import Rank
from maniple.core.step import StepArrays
from maniple.engine.cohort import Cohort, Final
from maniple.engine.stats import Times


class LocalEngine:
    """Cohorts in this process, all writing into rows of the same arrays.

    native: one cohort of all rows, on MuJoCo's thread pool.
    serial: a cohort per row on this thread, for a debugger.
    """

    workers = 0

    def __init__(
        self,
        recipe: Recipe,
        num_envs: int,
        threads: int,
        mode: AutoresetMode,
        one_by_one: bool = False,
    ) -> None:
        rank = Rank.here().rank
        sizes = [1] * num_envs if one_by_one else [num_envs]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        groups = [
            recipe.group(size, threads, rank, start)
            for size, start in zip(sizes, starts, strict=True)
        ]
        self.contract: Contract = groups[0].contract
        self.num_envs = num_envs
        self.turns = [
            StepArrays(self.contract.observation, self.contract.extras, num_envs) for _ in range(2)
        ]
        self.turn = 0
        self.exec_times = Times()
        self.last_exec_s = 0.0
        self._slices = [slice(a, a + n) for a, n in zip(starts, sizes, strict=True)]
        self._cohorts = [
            Cohort(group, [t.rows_of(rows) for t in self.turns], mode, rows.start)
            for group, rows in zip(groups, self._slices, strict=True)
        ]

    @property
    def arrays(self) -> StepArrays:
        """What the last call wrote."""
        return self.turns[self.turn]

    def reset(self, mask: NDArray[np.bool_], seeds: Sequence[int | None], options: dict) -> None:
        """Begin a new episode in the rows of the mask."""
        self.turn ^= 1
        for cohort, part in zip(self._cohorts, self._slices, strict=True):
            rows = np.flatnonzero(mask[part])
            chosen = [seeds[part.start + row] for row in rows]
            cohort.reset(self.turn, rows, chosen, options)

    def step(self, actions: NDArray) -> None:
        """Take one action in every row."""
        self.turn ^= 1
        start = perf_counter()
        if len(self._cohorts) == 1:
            self._cohorts[0].step(self.turn, actions)
        else:
            for cohort, part in zip(self._cohorts, self._slices, strict=True):
                cohort.step(self.turn, actions[part])
        self.last_exec_s = perf_counter() - start
        self.exec_times.add(self.last_exec_s)

    def chunk(self, actions: NDArray) -> None:
        """Take K actions in every row."""
        self.turn ^= 1
        start = perf_counter()
        for cohort, part in zip(self._cohorts, self._slices, strict=True):
            cohort.chunk(self.turn, actions[part])
        self.last_exec_s = perf_counter() - start
        self.exec_times.add(self.last_exec_s)

    def num_steps(self) -> NDArray[np.int64]:
        """Steps that each row took in the last call."""
        return np.concatenate([cohort.num_steps for cohort in self._cohorts])

    def finals(self) -> list[Final]:
        """Ends of the episodes that the last call reset at once."""
        return [final for cohort in self._cohorts for final in cohort.finals]

    def remarks(self) -> dict[int, dict[str, Any]]:
        """Return and forget what is to be said of single rows."""
        if len(self._cohorts) == 1:
            return self._cohorts[0].remarks()
        found: dict[int, dict[str, Any]] = {}
        for cohort in self._cohorts:
            for row, remark in cohort.remarks().items():
                found[cohort.first_row + row] = remark
        return found

    def extra_stats(self) -> dict[str, Any]:
        """Nothing more to tell: there are no workers."""
        return {}

    def each_row(self, what: str, name: str, args: tuple, kwargs: dict, values: Any = None) -> list:
        """Get, set or call an attribute in every row."""
        results = []
        for cohort, part in zip(self._cohorts, self._slices, strict=True):
            mine = None if values is None else values[part]
            results += cohort.touch(what, name, args, kwargs, mine)
        return results

    def close(self) -> None:
        """Let go of the groups."""
        for cohort in self._cohorts:
            cohort.group.close()
