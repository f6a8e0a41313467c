"""End-effector control: steps of the fingertip, the gripper pointing down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import ControlContext, StepControl, actuators, servo_range
from maniple.sim.control.grip import Grip
from maniple.sim.control.ik import Kinematics
from maniple.sim.rotation import euler_mat


class EndEffector(StepControl):
    """Actions in [-1, 1]: three steps of the tip (x, y, z) and the gripper (-1 shut, 1 open).

    The wanted pose is always counted from the servo targets, not from the measured pose, so that
    the arm does not sink under its own weight. The servo targets are the only memory.
    """

    def __init__(self, context: ControlContext) -> None:
        model, robot = context.model, context.robot
        self._grip = Grip(model, robot)
        step = f"steps of the tip (1 is {context.ee_step_m} m, world x y z), gripper down"
        meaning = step + "; gripper (-1 shut, 1 open)" * bool(self._grip.size)
        shape = (3 + self._grip.size,)
        self.action = ArraySpec(shape, np.dtype(np.float32), -1.0, 1.0, meaning=meaning)
        self._kinematics = Kinematics(robot, context.base, context.rows, context.threads)
        self._arm = actuators(model, robot.joints)
        self._down = euler_mat(robot.down_rpy)
        self._step = context.ee_step_m
        self._box = np.array(context.low_m), np.array(context.high_m)
        self._low, self._high = servo_range(model)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return servo targets whose tip is one step further."""
        q = ctrl[:, self._arm]
        tip, _ = self._kinematics.forward(q)
        goal = np.clip(tip + actions[:, :3].astype(np.float64) * self._step, *self._box)
        out = ctrl.copy()
        out[:, self._arm] = self._kinematics.solve(
            q, goal, self._down, turn_weight=0.03, iterations=1, largest_step=0.2, position_first=2
        )
        self._grip.command_width(actions[:, 3:], out)
        return np.clip(out, self._low, self._high)
