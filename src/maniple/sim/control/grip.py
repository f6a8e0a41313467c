"""Open or shut grippers, nothing between: the last numbers of an action say which."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.control.control import actuators
from maniple.sim.robots.robot import Robot

OPEN_ABOVE = 0.5


class Grip:
    """Writes the servo targets of a robot's grippers, of which there may be none."""

    def __init__(self, model: mujoco.MjModel, robot: Robot) -> None:
        self._grippers = [
            (actuators(model, robot.groups[name]), between)
            for name, between in robot.grippers.items()
        ]
        self.size = len(self._grippers)
        """Numbers of an action that are about grippers."""
        self.fingers = np.concatenate([np.empty(0, np.intp), *(ids for ids, _ in self._grippers)])

    def command(self, numbers: NDArray, ctrl: NDArray) -> None:
        """Set the finger columns of servo targets (rows, nu) from numbers (rows, size)."""
        for k, (fingers, between) in enumerate(self._grippers):
            is_open = numbers[:, k] > OPEN_ABOVE
            ctrl[:, fingers] = np.where(is_open, between.open, between.closed)[:, None]

    def command_width(self, numbers: NDArray, ctrl: NDArray) -> None:
        """As `command`, but anything between shut (-1) and open (1)."""
        for k, (fingers, between) in enumerate(self._grippers):
            half = 0.5 * (between.open - between.closed)
            ctrl[:, fingers] = (between.closed + (numbers[:, k] + 1.0) * half)[:, None]
