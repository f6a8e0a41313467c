"""Joint control of an arm with a discrete gripper: positions or velocities."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.grip import Grip
from maniple.sim.robots.robot import Robot


class JointPosition:
    """Actions: a target for every joint of the arm (rad), and the gripper (> 0.5 is open)."""

    def __init__(self, model: mujoco.MjModel, robot: Robot) -> None:
        self._arm = [model.actuator(name).id for name in robot.joints]
        self._grip = Grip(model, robot)
        low, high = model.actuator_ctrlrange[self._arm].T
        # Rounded inwards, so that the float32 bound is never outside the servo's range.
        low = np.nextafter(np.append(low, 0.0).astype(np.float32), np.float32(np.inf))
        high = np.nextafter(np.append(high, 1.0).astype(np.float32), np.float32(-np.inf))
        low[-1], high[-1] = 0.0, 1.0
        self.action = ArraySpec((len(self._arm) + 1,), np.dtype(np.float32), low, high)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Pass the joints' targets on."""
        out = ctrl.copy()
        out[:, self._arm] = actions[:, :-1]
        self._grip.command(actions[:, -1], out)
        return out


class JointVelocity:
    """Actions: a velocity for every joint of the arm (rad/s), and the gripper (> 0.5 is open)."""

    def __init__(
        self, model: mujoco.MjModel, robot: Robot, step_s: float, most_rad_s: float = 1.0
    ) -> None:
        self._arm = [model.actuator(name).id for name in robot.joints]
        self._grip = Grip(model, robot)
        self._step_s = step_s
        self._low, self._high = model.actuator_ctrlrange[self._arm].T
        most = np.full(len(self._arm), most_rad_s)
        low, high = np.append(-most, 0.0), np.append(most, 1.0)
        self.action = ArraySpec(
            (len(self._arm) + 1,),
            np.dtype(np.float32),
            low.astype(np.float32),
            high.astype(np.float32),
        )

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Move the joints' targets on by one step's worth."""
        out = ctrl.copy()
        moved = ctrl[:, self._arm] + actions[:, :-1].astype(np.float64) * self._step_s
        out[:, self._arm] = np.clip(moved, self._low, self._high)
        self._grip.command(actions[:, -1], out)
        return out
