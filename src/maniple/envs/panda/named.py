"""Select the object that a row's variation names: the middle drawer, the steak, the red square."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maniple.envs.panda.grasp import NOTE
from maniple.sim.state import State


def named(s: State, options: Sequence[ArrayLike]) -> NDArray:
    """Per row, the option (rows, ...) that its variation names."""
    variation = s.note("variation").astype(np.intp)
    return np.array(options)[variation, np.arange(s.rows)]


def is_named_held(s: State) -> NDArray[np.bool_]:
    """Whether the gripper holds the graspable thing that the variation names."""
    return s.note(NOTE) == s.note("variation") + 1
