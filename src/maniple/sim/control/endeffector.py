"""End-effector control: steps of the fingertip, the gripper pointing down."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import servo_range
from maniple.sim.control.ik import Kinematics
from maniple.sim.robots.chain import Vec3
from maniple.sim.robots.robot import Robot
from maniple.sim.rotation import euler_mat


class EndEffector:
    """Actions in [-1, 1]: three steps of the tip (x, y, z) and the gripper (-1 shut, 1 open).

    The wanted pose is always counted from the servo targets, not from the measured pose, so that
    the arm does not sink under its own weight. The servo targets are the only memory.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        robot: Robot,
        base: Vec3,
        rows: int,
        threads: int,
        step_m: float = 0.02,
        low_m: Vec3 = (-np.inf, -np.inf, -np.inf),
        high_m: Vec3 = (np.inf, np.inf, np.inf),
    ) -> None:
        self.action = ArraySpec((4,), np.dtype(np.float32), -1.0, 1.0)
        self._kinematics = Kinematics(robot, base, rows, threads)
        self._arm = [model.actuator(name).id for name in robot.joints]
        self._gripper = model.actuator(robot.gripper).id
        self._grip = (robot.gripper_closed, robot.gripper_open)
        self._down = euler_mat(robot.down_rpy)
        self._step = step_m
        self._box = np.array(low_m), np.array(high_m)
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
        shut, wide = self._grip
        out[:, self._gripper] = shut + (actions[:, 3] + 1.0) * (0.5 * (wide - shut))
        return np.clip(out, self._low, self._high)
