"""What every controller offers: an action's shape and bounds, and how it is applied."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec


class Control(Protocol):
    """Turn a batch of actions into servo commands."""

    action: ArraySpec

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return the next servo targets, (rows, nu), from the actions and the present ones."""
        ...


def servo_range(model) -> tuple[NDArray, NDArray]:
    """Lowest and highest target of each servo; unlimited ones are infinite."""
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -np.inf)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], np.inf)
    return low, high
