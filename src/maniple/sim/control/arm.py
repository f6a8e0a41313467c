"""Joint control with discrete grippers: positions or velocities of arms and a moving base."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import GRIP_MEANING, ControlContext, StepControl, actuators
from maniple.sim.control.grip import Grip

MOST_RAD_S = 1.0


class JointPosition(StepControl):
    """Actions: a target for every joint but the grippers' (rad, m), then each gripper."""

    def __init__(self, context: ControlContext) -> None:
        model, robot = context.model, context.robot
        self._joints = actuators(model, robot.plain_joints)
        self._grip = Grip(model, robot)
        low, high = model.actuator_ctrlrange[self._joints].T.astype(np.float32)
        # Rounded inwards, so that the float32 bound is never outside the servo's range.
        low, high = np.nextafter(low, np.float32(np.inf)), np.nextafter(high, np.float32(-np.inf))
        names = ", ".join(robot.plain_joints)
        self.action = _spec(low, high, self._grip.size, f"joint targets (rad or m): {names}")

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Pass the joints' targets on."""
        out, count = ctrl.copy(), len(self._joints)
        out[:, self._joints] = actions[:, :count]
        self._grip.command(actions[:, count:], out)
        return out


class JointVelocity(StepControl):
    """Actions: a velocity for every joint but the grippers' (rad/s, m/s), then each gripper."""

    def __init__(self, context: ControlContext) -> None:
        model, robot = context.model, context.robot
        self._joints = actuators(model, robot.plain_joints)
        self._grip = Grip(model, robot)
        self._step_s = context.step_s
        self._low, self._high = model.actuator_ctrlrange[self._joints].T
        most = np.full(len(self._joints), MOST_RAD_S, np.float32)
        names = ", ".join(robot.plain_joints)
        meaning = f"joint velocities (rad/s or m/s): {names}"
        self.action = _spec(-most, most, self._grip.size, meaning)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Move the joints' targets on by one step's worth."""
        out, count = ctrl.copy(), len(self._joints)
        moved = ctrl[:, self._joints] + actions[:, :count].astype(np.float64) * self._step_s
        out[:, self._joints] = np.clip(moved, self._low, self._high)
        self._grip.command(actions[:, count:], out)
        return out


def _spec(low: NDArray, high: NDArray, grippers: int, meaning: str) -> ArraySpec:
    """Bounds of the joints, then 0 to 1 for each gripper."""
    low, high = np.append(low, np.zeros(grippers)), np.append(high, np.ones(grippers))
    if grippers:
        meaning = f"{meaning}; {GRIP_MEANING}"
    float32 = np.dtype(np.float32)
    return ArraySpec(low.shape, float32, low.astype(float32), high.astype(float32), meaning=meaning)
