"""What a row shows after a fault: its last good observation, in an episode that was cut off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.step import StepArrays

PAUSED = ("worker_restarting", "resetting")
"""Keys of `info` in rows that took no step, and show their last observation again."""
LOST = ("worker_restarted", "env_error", *PAUSED)
"""Keys of `info` in rows whose new observation does not follow from their action."""


def lost_rows(info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Return a mask of the rows whose new observation does not follow from their action."""
    return _any_of(LOST, info)


def paused_rows(info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Return a mask of the rows that took no step."""
    return _any_of(PAUSED, info)


def _any_of(keys: tuple[str, ...], info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    masks = [info[f"_{key}"] for key in keys if f"_{key}" in info]
    return np.logical_or.reduce(masks) if masks else None


def waiting_after(
    ended: NDArray[np.bool_],
    waiting: NDArray[np.bool_] | None,
    lost: NDArray[np.bool_] | None,
) -> NDArray[np.bool_]:
    """Return the rows whose next step begins an episode.

    Args:
        ended: Rows whose episode ended in the last step.
        waiting: Rows whose episode should have begun in the last step.
        lost: Rows that took no proper step. Those of them that were waiting go on waiting.
    """
    return ended if lost is None or waiting is None else ended | (waiting & lost)


def cut_off(out: StepArrays, rows: int | slice) -> None:
    """End the episodes of rows without a reward: truncated, not terminated."""
    out.reward[rows] = 0.0
    out.terminated[rows], out.truncated[rows] = False, True


def repeat_and_cut_off(out: StepArrays, last_good: StepArrays, rows: int | slice) -> None:
    """Show rows as they were in an earlier step, as episodes that were cut off there."""
    out.obs.copy_from(last_good.obs, rows)
    out.extras.copy_from(last_good.extras, rows)
    cut_off(out, rows)


class FaultedRows(dict[int, dict[str, NDArray]]):
    """Rows that are out of service until their next reset, with their last good observations."""

    def add(self, row: int, last_good: StepArrays) -> None:
        """Take a row out of service."""
        self[row] = last_good.obs.take(row)

    def release(self, rows: NDArray[np.intp]) -> None:
        """Put rows that were reset back into service."""
        for row in rows.tolist() if self else ():
            self.pop(row, None)

    def show(self, out: StepArrays) -> None:
        """Overwrite what was reported of the rows."""
        for row, obs in self.items():
            out.obs.put(row, obs)
            cut_off(out, row)


def fault_text(
    row: int, why: str, seed: Any, step: int, action: NDArray | None, episode: int | None = None
) -> str:
    """Return the text of `info["env_error"]`: what happened, and how to get there again."""
    episodes = "" if episode is None else f"episode {episode}, "
    last = "none yet"
    if action is not None:
        last = np.array2string(np.asarray(action), precision=4, separator=", ")
    return f"row {row}: {why}; seed {seed}, {episodes}step {step}, last action {last}"
