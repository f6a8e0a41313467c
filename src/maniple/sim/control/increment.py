"""Increments of every driven joint, and speeds of a base that is driven."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import ControlContext, StepControl, actuators, servo_range

STEP = 0.05
"""Of a joint whose robot says nothing (rad, m)."""


class Increment(StepControl):
    """Actions in [-1, 1]: a step of every joint of arms and grippers, then the base's two speeds.

    The base's are ahead and turning: it goes where it looks, as wheels do.
    """

    def __init__(self, context: ControlContext) -> None:
        model, robot = context.model, context.robot
        parts = {name: joints for name, joints in robot.groups.items() if name != "base"}
        joints = [joint for names in parts.values() for joint in names]
        self._servos = actuators(model, tuple(joints))
        self._steps = np.array([robot.steps.get(name, STEP) for name in joints])
        self._base = actuators(model, robot.groups.get("base", ()))
        self._speed = robot.base_speed
        self._low, self._high = servo_range(model)
        if len(self._base):
            self._yaw = int(model.joint(robot.groups["base"][2]).qposadr[0])
        steps = [
            f"{part}: " + ", ".join(f"{n} {robot.steps.get(n, STEP):g}" for n in names)
            for part, names in parts.items()
        ]
        meaning = f"steps of the servo targets, where 1 is (rad or m) {'; '.join(steps)}"
        if len(self._base):
            meaning += f"; base: ahead ({self._speed[0]:g} m/s), turning ({self._speed[1]:g} rad/s)"
        size = len(joints) + 2 * bool(len(self._base))
        self.action = ArraySpec((size,), np.dtype(np.float32), -1.0, 1.0, meaning=meaning)
        self._qpos: NDArray | None = None

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Add a step to the present targets, within the servos' range."""
        out, count = ctrl.copy(), len(self._servos)
        moved = ctrl[:, self._servos] + actions[:, :count].astype(np.float64) * self._steps
        out[:, self._servos] = np.clip(moved, self._low[self._servos], self._high[self._servos])
        return out

    def execute(self, actions: NDArray, active: NDArray[np.bool_] | None, drive) -> None:
        """Command the servos, then step."""
        targets = self.command(actions, drive.ctrl)
        if len(self._base):
            if self._qpos is None:
                self._qpos = drive.sim.bind("qpos")
            yaw = self._qpos[:, self._yaw]
            ahead = actions[:, -2].astype(np.float64) * self._speed[0]
            targets[:, self._base[0]] = ahead * np.cos(yaw)
            targets[:, self._base[1]] = ahead * np.sin(yaw)
            targets[:, self._base[2]] = actions[:, -1] * self._speed[1]
        drive.step_to(targets, active)
