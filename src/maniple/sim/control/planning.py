"""Planned control: one action is a whole path to a pose, around obstacles."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from maniple.sim.control.collision import CollisionCheck
from maniple.sim.control.control import ControlContext, Drive, actuators
from maniple.sim.control.grip import Grip
from maniple.sim.control.ik import Approach, Kinematics
from maniple.sim.control.ik_restarts import find_near
from maniple.sim.control.pose import checked_pose, pose_spec
from maniple.sim.control.rrt_connect import connect, is_clear, shortened
from maniple.sim.rotation import quat_mat
from maniple.sim.simulation import Simulation

STARTS = 16
MOST_RAD_S, MOST_RAD_S2 = 1.5, 6.0
PERIOD_S = 0.05
"""Time between two servo targets of a path."""
GRIP_S = 0.3
"""How long the arm waits for a gripper that opens or shuts."""
LINE_STEPS = 60


class Planning:
    """Actions [x y z qx qy qz qw gripper], as `Pose`: the arm goes there, then the gripper acts.

    First a straight line of the tip, then one of the joints, then RRT-Connect. Random numbers
    come from the action and the arm's position: the same step is planned the same way always.
    """

    def __init__(self, context: ControlContext) -> None:
        model, robot, base = context.model, context.robot, context.base
        self._grip = Grip(model, robot)
        self.action = pose_spec(context, self._grip.size)
        self.invalid = np.zeros(context.rows, np.bool_)
        self._box = np.array(context.low_m) - 1e-6, np.array(context.high_m) + 1e-6
        self._kinematics = Kinematics(robot, base, STARTS, 1)
        self._single = Kinematics(robot, base, 1, 1)
        self._collision = CollisionCheck(model, robot)
        self._arm = actuators(model, robot.joints)
        self._how = Approach(posture=robot.posture)

    def execute(self, actions: NDArray, active: NDArray[np.bool_] | None, drive: Drive) -> None:
        """Plan every active row's whole path, then follow it."""
        drive.follow(self._paths(actions, drive.ctrl, drive.sim, active), PERIOD_S)

    def _paths(
        self, actions: NDArray, ctrl: NDArray, sim: Simulation, active: NDArray[np.bool_] | None
    ) -> list[NDArray]:
        """Return every row's servo targets, (steps, nu), one every PERIOD_S; no steps: it stays."""
        pos, quat, is_sound = checked_pose(actions, *self._box)
        self.invalid[:] = False
        paths = [np.empty((0, ctrl.shape[1])) for _ in ctrl]
        rows = np.arange(len(ctrl)) if active is None else np.flatnonzero(active)
        for row in rows.tolist():
            path = self._path(row, pos[row], quat_mat(quat[row]), ctrl, sim)
            if path is None or not is_sound[row]:
                self.invalid[row] = True
                continue
            paths[row] = self._servo_targets(path, actions[row, 7:], ctrl[row])
        return paths

    def _path(
        self, row: int, pos: NDArray, mat: NDArray, ctrl: NDArray, sim: Simulation
    ) -> list[NDArray] | None:
        start = ctrl[row, self._arm]
        seed = zlib.crc32(pos.tobytes() + start.tobytes())
        line = self._straight(start, pos, mat)
        goal = line[-1] if line else find_near(self._kinematics, start, pos, mat, seed)
        if goal is None:
            return None
        self._collision.set_scene(sim.data(row), [start, goal], _held_body(sim, row))
        is_free = self._collision.is_free
        if line and all(is_free(q) for q in line):
            return line
        if is_clear(start, goal, is_free):
            return [start, goal]
        rng = np.random.default_rng(seed)
        low, high = self._single.low, self._single.high
        found = connect(start, goal, is_free, low, high, rng)
        return found and shortened(found, is_free, rng)

    def _straight(self, start: NDArray, pos: NDArray, mat: NDArray) -> list[NDArray]:
        """Joint positions along a straight line of the tip; nothing where it leaves the reach."""
        q, way = start[None], [start]
        for _ in range(LINE_STEPS):
            q, is_there = self._single.approach(q, pos[None], mat[None], self._how)
            if not is_there[0]:
                return []
            way.append(q[0])
            if self._single.is_at(q, pos, mat):
                return way
        return []

    def _servo_targets(self, path: list[NDArray], grip: NDArray, ctrl: NDArray) -> NDArray:
        times, points = timed(path, PERIOD_S)
        wait = round(GRIP_S / PERIOD_S)
        targets = np.repeat(ctrl[None], len(times) + wait, axis=0)
        targets[: len(times), self._arm] = points
        targets[len(times) :, self._arm] = points[-1]
        after = targets[len(times) :].copy()
        self._grip.command(np.repeat(grip[None], wait, axis=0), after)
        if np.array_equal(after[-1], targets[-1]):
            return targets[: len(times) + 1]
        targets[len(times) :] = after
        return targets


def timed(path: list[NDArray], period_s: float) -> tuple[NDArray, NDArray]:
    """Walk a path with limited speed and acceleration of its fastest joint; sample it."""
    points = np.stack(path)
    lengths = np.abs(np.diff(points, axis=0)).max(1)
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    total = along[-1]
    ramp_s = min(MOST_RAD_S / MOST_RAD_S2, np.sqrt(total / MOST_RAD_S2))
    top = MOST_RAD_S2 * ramp_s
    cruise_s = max(0.0, (total - top * ramp_s) / top) if top > 0 else 0.0
    end_s = 2 * ramp_s + cruise_s
    times = np.minimum(np.arange(1, int(np.ceil(end_s / period_s)) + 1) * period_s, end_s)
    times = times if len(times) else np.array([0.0])
    rise = 0.5 * MOST_RAD_S2 * np.minimum(times, ramp_s) ** 2
    level = top * np.clip(times - ramp_s, 0.0, cruise_s)
    fall_s = np.clip(times - ramp_s - cruise_s, 0.0, ramp_s)
    at = np.minimum(rise + level + top * fall_s - 0.5 * MOST_RAD_S2 * fall_s**2, total)
    columns = [np.interp(at, along, points[:, k]) for k in range(points.shape[1])]
    return times, np.stack(columns, 1)


def _held_body(sim: Simulation, row: int) -> int:
    """Number of the body that is welded to the hand, or -1."""
    if sim.model.neq == 0:
        return -1
    active = np.flatnonzero(sim.bind("eq_active")[row])
    return int(sim.model.eq_obj2id[active[0]]) if len(active) else -1
