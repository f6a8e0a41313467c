"""Give one group of environments autoreset and action chunks, right beside the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maniple.core.errors import ResetNeeded
from maniple.core.group import Group, RowByRow
from maniple.core.quick import all_true, any_true
from maniple.core.step import StepArrays
from maniple.engine.row_attribute import counters_of, read_state, touch, write_state


class Final(NamedTuple):
    """How an episode ended, where its row was reset in the same step."""

    row: int
    obs: dict[str, NDArray]
    extras: dict[str, NDArray]


class Autoreset:
    """A group, two buffers of step arrays, and the rows that wait for their reset."""

    def __init__(
        self, group: Group, buffers: Sequence[StepArrays], mode: AutoresetMode, first_row: int = 0
    ) -> None:
        self.group = group
        self.rows = buffers[0].rows
        self.first_row = first_row
        self.finals: list[Final] = []
        self.num_steps = np.zeros(self.rows, np.int64)
        """Steps that each row took in the last chunk."""
        self._row_by_row = group if isinstance(group, RowByRow) else None
        self._buffers = buffers
        self._mode = mode
        self._ended = np.zeros(self.rows, np.bool_)
        self._has_ended = False
        self._chunk_ends = np.zeros((2, self.rows), np.bool_)
        self._row_infos: dict[int, dict[str, Any]] = {}
        self._first_seeds: Sequence[int | None] | None = None
        self._waited: NDArray[np.bool_] | None = None
        """Rows that the present step resets instead of stepping them."""
        self._prepared = np.zeros(self.rows, np.bool_)
        """Rows that were reset ahead of the step that shows it."""
        self._prepared_infos: dict[int, dict[str, Any]] = {}
        self._aside: StepArrays | None = None

    def wait_for_reset(self, seeds: Sequence[int | None]) -> None:
        """Treat every row as ended: the next step begins its episode, with these seeds."""
        # A row that fails at once falls back on what the worker before this one showed.
        for arrays in self._buffers:
            self.group.bind(arrays)
        self._ended[:] = True
        self._has_ended = True
        self._first_seeds = seeds

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the infos of single rows."""
        latest = self.group.row_infos()
        if not self._row_infos:
            return latest
        row_infos, self._row_infos = self._row_infos, {}
        for row, info in latest.items():
            row_infos.setdefault(row, {}).update(info)
        return row_infos

    def touch(self, what: str, name: str, args: tuple, kwargs: dict, values: Any = None) -> list:
        """Get, set or call an attribute in every row."""
        given = [None] * self.rows if values is None else values
        return [
            touch(self.group.row(row), what, name, args, kwargs, given[row])
            for row in range(self.rows)
        ]

    def get_state(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Copy the states of rows, and whether they wait for their reset."""
        states = [read_state(self.group.row(row)) for row in rows]
        for row, state in zip(rows, states, strict=True):
            counters_of(state)["has_ended"] = bool(self._ended[row])
            counters_of(state)["is_prepared"] = bool(self._prepared[row])
        return states

    def set_state(self, states: Sequence[dict[str, Any]], rows: Sequence[int]) -> None:
        """Bring rows back to states that `get_state` gave."""
        for row, state in zip(rows, states, strict=True):
            write_state(self.group.row(row), state)
            counters = counters_of(state)
            self._ended[row] = bool(counters.get("has_ended", False))
            self._forget_prepared([row])
            if counters.get("is_prepared", False):
                # The state is that of the new episode already, which the next step shows; a hosted
                # environment's first observation is not known here, so that it goes on with a step.
                self._prepared[row] = self._ended[row] = self._row_by_row is None
        self._has_ended = bool(self._ended.any())

    def reset(
        self, buffer: int, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict
    ) -> None:
        """Begin a new episode in `rows`; the others are shown as they are."""
        arrays = self._begin(buffer)
        if len(rows):
            self.group.reset(rows, seeds, options)
        self.group.report()
        arrays.reward[:] = 0.0
        arrays.terminated[:] = arrays.truncated[:] = False
        self._ended[rows] = False
        self._forget_prepared(rows.tolist())
        for row in self.group.faulted:
            # It could not be reset: it has ended already, and waits for its next reset.
            if row in rows:
                self._ended[row] = arrays.truncated[row] = True
        self._has_ended = bool(self._ended.any())

    def prepare(self, buffer: int) -> None:
        """Reset the rows that wait for it; the next step shows them.

        What the last step showed, in `buffer`, may still be looked at: whatever a reset writes goes
        into a copy of it.
        """
        shown = self._buffers[buffer]
        if self._aside is None:
            self._aside = StepArrays(shown.obs.layout, shown.extras.layout, self.rows)
        self._aside.copy_rows(shown, slice(None))
        self.group.bind(self._aside)
        self._reset_waiting()
        # They belong to the step that shows the reset, whatever is asked in between.
        self._prepared_infos |= self.group.row_infos()
        self._prepared |= self._ended

    def _forget_prepared(self, rows: Sequence[int]) -> None:
        """Rows begin their episode in another way than by a reset that was made ahead."""
        for row in rows:
            self._prepared[row] = False
            self._prepared_infos.pop(row, None)

    def step(self, buffer: int, actions: NDArray) -> None:
        """Take one action in every row."""
        arrays = self._begin(buffer)
        if not self._has_ended:
            self.group.step(actions, None)
            self.group.report()
        else:
            self._step_and_restart(arrays, actions)
        self._finish(arrays)

    def chunk(self, buffer: int, actions: NDArray) -> None:
        """Take actions (rows, K, ...) one after the other; a row that ends stops there.

        A row that waits for its reset gets it, and ignores the whole chunk: those actions were
        meant for the episode that is over.
        """
        arrays = self._begin(buffer)
        running = self._restart()
        self.num_steps[:] = 0
        if self._row_by_row is not None:
            arrays.reward[:] = 0.0
            arrays.ends[:] = False
            self._row_by_row.chunk(actions, running, self.num_steps)
            total = arrays.reward.copy()
            self.group.report()
            arrays.reward[:] = total
        else:
            total = self._step_together(arrays, actions, running)
            self.group.report()
            # A row may fail in the last report, when its observation is written: it ends there.
            self._chunk_ends[1] |= running & arrays.truncated
            arrays.reward[:] = total
            arrays.ends[:] = self._chunk_ends
        self._finish(arrays)

    def _step_together(
        self, arrays: StepArrays, actions: NDArray, running: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Step the running rows, which become fewer; return the sums of their rewards."""
        total = np.zeros(self.rows)
        self._chunk_ends[:] = False
        is_everyone = all_true(running)
        for k in range(actions.shape[1]):
            if not (is_everyone or any_true(running)):
                break
            self.group.step(actions[:, k], None if is_everyone else running)
            self.group.report(final=False)
            if is_everyone and not any_true(arrays.ends):
                total += arrays.reward
                self.num_steps += 1
                continue
            is_everyone = False
            total += np.where(running, arrays.reward, 0.0)
            self._chunk_ends |= running & arrays.ends
            self.num_steps += running
            running &= ~(self._chunk_ends[0] | self._chunk_ends[1])
        return total

    def _begin(self, buffer: int) -> StepArrays:
        arrays = self._buffers[buffer]
        self.group.bind(arrays)
        self.finals = []
        return arrays

    def _restart(self) -> NDArray[np.bool_]:
        """Reset the rows that wait for it; return the rows to be stepped."""
        if not self._has_ended:
            return np.ones(self.rows, np.bool_)
        if self._mode is AutoresetMode.DISABLED:
            rows = (self.first_row + np.flatnonzero(self._ended)).tolist()
            raise ResetNeeded(
                f"Rows {rows} have ended and autoreset is disabled. Reset them first: "
                "envs.reset(options={'reset_mask': terminated | truncated})."
            )
        self._waited = self._ended.copy()
        self._reset_waiting()
        for row, info in self._prepared_infos.items():
            if self._prepared[row]:
                self._row_infos[row] = info
        self._prepared_infos.clear()
        self._prepared[:] = False
        return ~self._ended

    def _reset_waiting(self) -> None:
        """Reset the rows that wait for it, but for those that were reset ahead."""
        waiting = np.flatnonzero(self._ended & ~self._prepared)
        if not len(waiting):
            return
        seeds: Sequence[int | None] = [None] * len(waiting)
        if self._first_seeds is not None:
            seeds = [self._first_seeds[row] for row in waiting.tolist()]
            self._first_seeds = None
        self.group.reset(waiting, seeds, {})

    def _step_and_restart(self, arrays: StepArrays, actions: NDArray) -> None:
        running = self._restart()
        if running.any():
            self.group.step(actions, running)
        self.group.report()
        waited = ~running
        arrays.reward[waited] = 0.0
        arrays.terminated[waited] = arrays.truncated[waited] = False

    def _finish(self, arrays: StepArrays) -> None:
        if self._waited is not None:
            for row in self.group.faulted:
                arrays.truncated[row] |= self._waited[row]
            self._waited = None
        has_ended = any_true(arrays.ends)
        if has_ended or self._has_ended:
            np.logical_or(arrays.terminated, arrays.truncated, out=self._ended)
        self._has_ended = has_ended
        if has_ended and self._mode is AutoresetMode.SAME_STEP:
            self._restart_at_once(arrays)

    def _restart_at_once(self, arrays: StepArrays) -> None:
        rows = np.flatnonzero(self._ended)
        self._row_infos = self.group.row_infos()
        for row in rows.tolist():
            info = self._row_infos.pop(row, {})
            if info:
                # The info is about the episode that is over.
                self._row_infos[row] = {"final_info": info}
            obs, extras = arrays.obs.take(row), arrays.extras.take(row)
            self.finals.append(Final(self.first_row + row, obs, extras))
        kept = arrays.reward.copy(), arrays.terminated.copy(), arrays.truncated.copy()
        self.group.reset(rows, [None] * len(rows), {})
        self.group.report()
        arrays.reward[:], arrays.terminated[:], arrays.truncated[:] = kept
        self._ended[:] = False
        self._ended[list(self.group.faulted)] = True
        self._has_ended = bool(self._ended.any())
