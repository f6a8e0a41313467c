"""The arrays that one step of many environments reads and writes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.block import Allocate, Block
from maniple.core.spec import ArraySpec, Layout


class StepArrays:
    """Observations, rewards and flags of some rows, in whatever memory the engine chose.

    `extras` are the numbers that end up in `info`: success, named reward terms.
    """

    def __init__(
        self,
        observation: Layout,
        extras: Layout,
        rows: int,
        allocate: Allocate = np.zeros,
    ) -> None:
        self.rows = rows
        self.obs = Block(observation, rows, allocate)
        self.extras = Block(extras, rows, allocate)
        self.reward: NDArray[np.float64] = allocate((rows,), np.dtype(np.float64))
        self.ends: NDArray[np.bool_] = allocate((2, rows), np.dtype(np.bool_))
        self._name_parts()

    def _name_parts(self) -> None:
        self.terminated, self.truncated = self.ends

    def rows_of(self, rows: slice) -> StepArrays:
        """Return the same arrays restricted to some rows, sharing memory."""
        part = object.__new__(StepArrays)
        part.obs, part.extras = self.obs.rows_of(rows), self.extras.rows_of(rows)
        part.rows = part.obs.rows
        part.reward = self.reward[rows]
        part.ends = self.ends[:, rows]
        part._name_parts()
        return part

    def copy_rows(self, other: StepArrays, rows: slice) -> None:
        """Take over what another set of arrays holds of some rows."""
        self.obs.copy_from(other.obs, rows)
        self.extras.copy_from(other.extras, rows)
        self.reward[rows] = other.reward[rows]
        self.ends[:, rows] = other.ends[:, rows]


def scalar(dtype: type = np.float64) -> ArraySpec:
    """Return the spec of one number per environment."""
    return ArraySpec((), np.dtype(dtype))
