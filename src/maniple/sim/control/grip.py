"""Open or shut a gripper, nothing between: the last number of an action says which."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.robots.robot import Robot

OPEN_ABOVE = 0.5


class Grip:
    """Writes the fingers' servo targets."""

    def __init__(self, model: mujoco.MjModel, robot: Robot) -> None:
        names = (robot.gripper, robot.twin) if robot.twin else (robot.gripper,)
        self.fingers = [model.actuator(name).id for name in names]
        self._shut, self._open = robot.gripper_closed, robot.gripper_open

    def command(self, number: NDArray, ctrl: NDArray) -> None:
        """Set the finger columns of servo targets (rows, nu) from one number per row."""
        ctrl[:, self.fingers] = np.where(number > OPEN_ABOVE, self._open, self._shut)[:, None]
