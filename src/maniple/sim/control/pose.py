"""End-effector control by pose: where the tip should be, absolute or as a step from where it is."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.grip import Grip
from maniple.sim.control.ik import Approach, Kinematics
from maniple.sim.robots.chain import Vec3
from maniple.sim.robots.robot import Robot
from maniple.sim.rotation import mats_quat, quat_mat, quat_mul, small_turn

SMALLEST_QUAT = 0.1
"""A quaternion shorter than this has no direction; longer ones are scaled to length 1."""


class Pose:
    """Actions [x y z qx qy qz qw gripper]: the tip's pose in the world, gripper 1 open, 0 shut.

    One step goes straight towards the pose, at most 5 cm and 0.35 rad. Where the arm cannot go,
    where the pose is outside of the workspace, or where the quaternion is none, the arm stays
    and `invalid` says so.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        robot: Robot,
        base: Vec3,
        rows: int,
        threads: int,
        low_m: Vec3,
        high_m: Vec3,
    ) -> None:
        self.action = pose_spec(low_m, high_m)
        self.invalid = np.zeros(rows, np.bool_)
        self._low, self._high = np.array(low_m) - 1e-6, np.array(high_m) + 1e-6
        self._mover = Mover(model, robot, base, rows, threads)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return servo targets whose tip is one step nearer."""
        pos, quat, is_sound = checked_pose(actions, self._low, self._high)
        return self._mover.move(pos, quat_mat(quat), is_sound, actions[:, 7], ctrl, self.invalid)


def pose_spec(low_m: Vec3, high_m: Vec3) -> ArraySpec:
    """Return what an action of eight numbers may be."""
    low = np.array([*low_m, -1, -1, -1, -1, 0], np.float32)
    high = np.array([*high_m, 1, 1, 1, 1, 1], np.float32)
    return ArraySpec((8,), np.dtype(np.float32), low, high)


def checked_pose(
    actions: NDArray, low_m: NDArray, high_m: NDArray
) -> tuple[NDArray, NDArray, NDArray[np.bool_]]:
    """Split actions into positions and unit quaternions (w x y z); say which make sense."""
    wanted = actions.astype(np.float64)
    pos, quat = wanted[:, :3], wanted[:, [6, 3, 4, 5]]
    squares = quat * quat
    length = np.sqrt(squares[:, 0] + squares[:, 1] + squares[:, 2] + squares[:, 3])
    is_inside = ((pos >= low_m) & (pos <= high_m)).all(1)
    unit = quat / np.maximum(length, SMALLEST_QUAT)[:, None]
    return pos, unit, is_inside & (length > SMALLEST_QUAT)


class DeltaPose:
    """Actions in [-1, 1]: steps of the tip, turns about the world's axes, and the gripper (> 0.5).

    Counted from the servo targets, so that the arm does not drift under a load.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        robot: Robot,
        base: Vec3,
        rows: int,
        threads: int,
        low_m: Vec3,
        high_m: Vec3,
        step_m: float = 0.03,
        step_rad: float = 0.15,
    ) -> None:
        self.action = ArraySpec((7,), np.dtype(np.float32), -1.0, 1.0)
        self.invalid = np.zeros(rows, np.bool_)
        self._box = np.array(low_m), np.array(high_m)
        self._steps = step_m, step_rad
        self._mover = Mover(model, robot, base, rows, threads)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return servo targets whose tip is one step further."""
        wanted = actions.astype(np.float64)
        tip, turn = self._mover.pose(ctrl)
        pos = np.clip(tip + wanted[:, :3] * self._steps[0], *self._box)
        quat = quat_mul(small_turn(wanted[:, 3:6] * self._steps[1]), mats_quat(turn))
        sound = np.ones(len(pos), np.bool_)
        return self._mover.move(pos, quat_mat(quat), sound, wanted[:, 6], ctrl, self.invalid)


class Mover:
    """Takes servo targets one step towards a pose, or leaves them where that cannot be."""

    def __init__(
        self, model: mujoco.MjModel, robot: Robot, base: Vec3, rows: int, threads: int
    ) -> None:
        self._kinematics = Kinematics(robot, base, rows, threads)
        self._arm = [model.actuator(name).id for name in robot.joints]
        self._grip = Grip(model, robot)
        self._how = Approach(posture=robot.home[: len(robot.joints)])

    def pose(self, ctrl: NDArray) -> tuple[NDArray, NDArray]:
        """Where the tip would be at the servo targets: (rows, 3) and (rows, 3, 3)."""
        return self._kinematics.forward(ctrl[:, self._arm])

    def move(
        self,
        pos: NDArray,
        mat: NDArray,
        is_sound: NDArray[np.bool_],
        grip: NDArray,
        ctrl: NDArray,
        invalid: NDArray[np.bool_],
    ) -> NDArray:
        """Return the next servo targets; note in `invalid` the rows that stay where they are."""
        before = ctrl[:, self._arm]
        after, is_there = self._kinematics.approach(before, pos, mat, self._how)
        good = is_there & is_sound
        np.logical_not(good, out=invalid)
        out = ctrl.copy()
        out[:, self._arm] = np.where(good[:, None], after, before)
        # A no-op is one of the whole hand.
        self._grip.command(grip, out)
        columns = self._grip.fingers
        out[:, columns] = np.where(good[:, None], out[:, columns], ctrl[:, columns])
        return out
