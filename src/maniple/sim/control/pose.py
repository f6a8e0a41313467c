"""End-effector control by pose: where the tip should be, absolute or as a step from where it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import (
    DELTA_MEANING,
    GRIP_MEANING,
    POSITION_MEANING,
    STEP_M,
    STEP_RAD,
    ControlContext,
    StepControl,
    actuators,
)
from maniple.sim.control.grip import Grip
from maniple.sim.control.ik import Approach, Kinematics
from maniple.sim.rotation import mats_quat, quat_mat, quat_mul, small_turn

STOP_RAD = 0.01
LEFT_PER_TICK = 0.35
"""RLBench ends an ik step at the first tick of its 50 ms clock at which every joint is this near to
its target; each tick leaves about this part of the way. A step of 1 cm to the side, where one joint
moves alone, so ends after 6.5 mm there."""
SMALLEST_QUAT = 0.1
"""A quaternion shorter than this has no direction; longer ones are scaled to length 1."""


class Pose(StepControl):
    """Actions [x y z qx qy qz qw gripper]: the tip's pose in the world, gripper 1 open, 0 shut.

    One step goes straight towards the pose, at most 5 cm and 0.35 rad, and ends a little before it,
    as RLBench's do: the next one towards the same pose goes on. Where the arm cannot go,
    where the pose is outside of the workspace, or where the quaternion is none, the arm stays
    and `invalid` says so.
    """

    def __init__(self, context: ControlContext) -> None:
        self._mover = Mover(context)
        self.action = pose_spec(context, self._mover.grip.size)
        self.invalid: NDArray[np.bool_] = np.zeros(context.rows, np.bool_)
        self._low, self._high = np.array(context.low_m) - 1e-6, np.array(context.high_m) + 1e-6

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return servo targets whose tip is one step nearer."""
        pos, quat, is_sound = checked_pose(actions, self._low, self._high)
        arm = self._mover.arm
        out = self._mover.move(pos, quat_mat(quat), is_sound, actions[:, 7:], ctrl, self.invalid)
        out[:, arm] = stopped_early(ctrl[:, arm], out[:, arm])
        return out


def stopped_early(before: NDArray, after: NDArray) -> NDArray:
    """Return how far RLBench's joints get on their way before the step counts as done."""
    way = after - before
    longest = np.maximum(np.abs(way).max(1, keepdims=True), STOP_RAD)
    ticks = np.maximum(1.0, np.ceil(np.log(STOP_RAD / longest) / np.log(LEFT_PER_TICK)))
    return before + way * (1.0 - LEFT_PER_TICK**ticks)


def pose_spec(context: ControlContext, grippers: int) -> ArraySpec:
    """Return what an action of a pose and the grippers may be."""
    low = np.array([*context.low_m, -1, -1, -1, -1, *[0] * grippers], np.float32)
    high = np.array([*context.high_m, 1, 1, 1, 1, *[1] * grippers], np.float32)
    meaning = "pose of the tip: position (m), quaternion xyzw; world"
    meaning += f"; {GRIP_MEANING}" * bool(grippers)
    return ArraySpec(low.shape, np.dtype(np.float32), low, high, meaning=meaning)


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


class DeltaPose(StepControl):
    """Actions in [-1, 1]: steps of the tip, turns about the world's axes, and the gripper (> 0.5).

    Counted from the servo targets, so that the arm does not drift under a load.
    """

    turns = True

    def __init__(self, context: ControlContext) -> None:
        self._mover = Mover(context)
        self._numbers = 6 if self.turns else 3
        meaning = DELTA_MEANING if self.turns else POSITION_MEANING
        meaning += f"; {GRIP_MEANING}" * bool(self._mover.grip.size)
        shape = (self._numbers + self._mover.grip.size,)
        self.action = ArraySpec(shape, np.dtype(np.float32), -1.0, 1.0, meaning=meaning)
        self.invalid: NDArray[np.bool_] = np.zeros(context.rows, np.bool_)
        self._box = np.array(context.low_m), np.array(context.high_m)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return servo targets whose tip is one step further."""
        wanted = actions.astype(np.float64)
        tip, turn = self._mover.pose(ctrl)
        pos = np.clip(tip + wanted[:, :3] * STEP_M, *self._box)
        quat = mats_quat(turn)
        if self.turns:
            quat = quat_mul(small_turn(wanted[:, 3:6] * STEP_RAD), quat)
        sound, grip = np.ones(len(pos), np.bool_), wanted[:, self._numbers :]
        return self._mover.move(pos, quat_mat(quat), sound, grip, ctrl, self.invalid)


class DeltaPosition(DeltaPose):
    """Actions in [-1, 1]: steps of the tip and the gripper (> 0.5); the orientation is held."""

    turns = False


class Mover:
    """Takes servo targets one step towards a pose, or leaves them where that cannot be."""

    def __init__(self, context: ControlContext) -> None:
        robot = context.robot
        self._kinematics = Kinematics(robot, context.base, context.rows, context.threads)
        self.arm = actuators(context.model, robot.joints)
        self.grip = Grip(context.model, robot)
        self._how = Approach(posture=robot.posture)

    def pose(self, ctrl: NDArray) -> tuple[NDArray, NDArray]:
        """Where the tip would be at the servo targets: (rows, 3) and (rows, 3, 3)."""
        return self._kinematics.forward(ctrl[:, self.arm])

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
        before = ctrl[:, self.arm]
        after, is_there = self._kinematics.approach(before, pos, mat, self._how)
        good = is_there & is_sound
        np.logical_not(good, out=invalid)
        out = ctrl.copy()
        out[:, self.arm] = np.where(good[:, None], after, before)
        # A no-op is one of the whole hand.
        self.grip.command(grip, out)
        columns = self.grip.fingers
        out[:, columns] = np.where(good[:, None], out[:, columns], ctrl[:, columns])
        return out
