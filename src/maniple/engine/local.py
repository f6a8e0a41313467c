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
from maniple.engine.autoreset import Autoreset, Final
from maniple.engine.stats import Times


class LocalEngine:
    """Groups with autoreset in this process, all writing into rows of the same arrays.

    native: one group of all rows, on MuJoCo's thread pool.
    serial: a group per row on this thread, for a debugger.
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
        self.buffers = [
            StepArrays(self.contract.observation, self.contract.extras, num_envs) for _ in range(2)
        ]
        self.buffer = 0
        self.exec_times = Times()
        self.last_exec_s = 0.0
        self.paused_rows = 0
        self._slices = [slice(a, a + n) for a, n in zip(starts, sizes, strict=True)]
        self._autoresets = [
            Autoreset(group, [t.rows_of(rows) for t in self.buffers], mode, rows.start)
            for group, rows in zip(groups, self._slices, strict=True)
        ]

    @property
    def arrays(self) -> StepArrays:
        """What the last call wrote."""
        return self.buffers[self.buffer]

    def reset(self, mask: NDArray[np.bool_], seeds: Sequence[int | None], options: dict) -> None:
        """Begin a new episode in the rows of the mask."""
        self.buffer ^= 1
        for autoreset, part in zip(self._autoresets, self._slices, strict=True):
            rows = np.flatnonzero(mask[part])
            chosen = [seeds[part.start + row] for row in rows]
            autoreset.reset(self.buffer, rows, chosen, options)

    def step(self, actions: NDArray) -> None:
        """Take one action in every row."""
        self.buffer ^= 1
        start = perf_counter()
        if len(self._autoresets) == 1:
            self._autoresets[0].step(self.buffer, actions)
        else:
            for autoreset, part in zip(self._autoresets, self._slices, strict=True):
                autoreset.step(self.buffer, actions[part])
        self.last_exec_s = perf_counter() - start
        self.exec_times.add(self.last_exec_s)

    def chunk(self, actions: NDArray) -> None:
        """Take K actions in every row."""
        self.buffer ^= 1
        start = perf_counter()
        for autoreset, part in zip(self._autoresets, self._slices, strict=True):
            autoreset.chunk(self.buffer, actions[part])
        self.last_exec_s = perf_counter() - start
        self.exec_times.add(self.last_exec_s)

    def num_steps(self) -> NDArray[np.int64]:
        """Steps that each row took in the last call."""
        return np.concatenate([autoreset.num_steps for autoreset in self._autoresets])

    def finals(self) -> list[Final]:
        """Ends of the episodes that the last call reset at once."""
        return [final for autoreset in self._autoresets for final in autoreset.finals]

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the infos of single rows."""
        if len(self._autoresets) == 1:
            return self._autoresets[0].row_infos()
        found: dict[int, dict[str, Any]] = {}
        for autoreset in self._autoresets:
            for row, info in autoreset.row_infos().items():
                found[autoreset.first_row + row] = info
        return found

    def extra_stats(self) -> dict[str, Any]:
        """Return nothing: there are no workers."""
        return {}

    def each_row(self, what: str, name: str, args: tuple, kwargs: dict, values: Any = None) -> list:
        """Get, set or call an attribute in every row."""
        results = []
        for autoreset, part in zip(self._autoresets, self._slices, strict=True):
            mine = None if values is None else values[part]
            results += autoreset.touch(what, name, args, kwargs, mine)
        return results

    def get_state(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Copy the states of rows."""
        found: dict[int, dict[str, Any]] = {}
        for autoreset, part in zip(self._autoresets, self._slices, strict=True):
            mine = [row for row in rows if part.start <= row < part.stop]
            states = autoreset.get_state([row - part.start for row in mine])
            found |= zip(mine, states, strict=True)
        return [found[row] for row in rows]

    def set_state(self, states: Sequence[dict[str, Any]], rows: Sequence[int]) -> None:
        """Bring rows back to states that `get_state` gave."""
        for autoreset, part in zip(self._autoresets, self._slices, strict=True):
            given = {
                row - part.start: state
                for row, state in zip(rows, states, strict=True)
                if part.start <= row < part.stop
            }
            autoreset.set_state(list(given.values()), list(given))

    def close(self) -> None:
        """Let go of the groups."""
        for autoreset in self._autoresets:
            autoreset.group.close()
