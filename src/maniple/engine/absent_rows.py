"""What rows show in a step that their worker did not take: their last good observation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.faults import repeat_and_cut_off
from maniple.engine.slab import Slab
from maniple.engine.worker_handle import WorkerHandle

RowInfos = dict[int, dict[str, Any]]


def cut_off(slab: Slab, handle: WorkerHandle) -> RowInfos:
    """Report the rows of a worker that was replaced as truncated; return why."""
    _repeat(slab, handle)
    handle.good_buffer = handle.buffer
    why, handle.owed = handle.owed, None
    return {row: {"worker_restarted": why} for row in handle.row_numbers}


def cut_off_in_reset(slab: Slab, handle: WorkerHandle, was_reset: NDArray[np.bool_]) -> RowInfos:
    """Report the rows of a worker that was replaced before or in a reset; return why.

    Those that were not reset are cut off, which a reset has no flags for: its info says so, and
    their next step begins an episode.
    """
    now, before = slab.buffers[handle.buffer], slab.buffers[handle.buffer ^ 1]
    for row in handle.row_numbers:
        if not was_reset[row]:
            repeat_and_cut_off(now, before, row)
    why, handle.owed = handle.owed, None
    return {row: {"worker_restarted": why} for row in handle.row_numbers}


def pause(slab: Slab, handle: WorkerHandle, buffer: int) -> RowInfos:
    """Repeat the rows of a worker that is not back yet, or that resets some; return which."""
    handle.buffer = buffer
    _repeat(slab, handle)
    handle.good_buffer = buffer
    now = slab.buffers[buffer]
    now.truncated[handle.rows] = False
    # What the last step earned or solved was reported with it.
    for array in now.extras.arrays.values():
        array[handle.rows] = 0
    why = "resetting" if handle.is_resetting else "worker_restarting"
    return {row: {why: True} for row in handle.row_numbers}


def _repeat(slab: Slab, handle: WorkerHandle) -> None:
    """Fill the rows with the last complete step, as an episode cut off there."""
    now, before = slab.buffers[handle.buffer], slab.buffers[handle.buffer ^ 1]
    repeat_and_cut_off(now, before, handle.rows)
    slab.num_steps[handle.rows] = 0
    slab.final_rows[handle.rows] = False
