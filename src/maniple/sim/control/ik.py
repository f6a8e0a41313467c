"""Inverse kinematics by damped least squares, for all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from maniple.sim.robots.robot import Robot
from maniple.sim.rotation import chord, mats_quat, quat_mat, turn_between, unit
from maniple.sim.scene import compile_model


class Kinematics:
    """The arm alone, on a batch of its own.

    Asking the simulated batch for Jacobians would make its next step start afresh (half a step
    of physics); this model has no objects and no contacts, and costs a few microseconds a row.
    """

    def __init__(self, robot: Robot, base: tuple[float, float, float], rows: int, threads: int):
        spec = mujoco.MjSpec()
        spec.compiler.degree = False
        robot.add(spec, base)
        self.rows = rows
        # Where things are is all that is asked: nothing touches and nothing is held back.
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        model = compile_model(spec)
        self._batch = Batch(model, rows, nthread=max(1, min(threads, rows // 32)))
        self._site = model.site(robot.tip).id
        self._body = int(model.site_bodyid[self._site])
        self._dofs = [int(model.joint(name).dofadr[0]) for name in robot.joints]
        self._qpos = self._batch.bind("qpos")
        self._tip = self._batch.bind("site_xpos")[:, self._site]
        self._turn = self._batch.bind("site_xmat")[:, self._site]
        self.low, self.high = model.jnt_range[self._dofs].T

    def forward(self, q: NDArray) -> tuple[NDArray, NDArray]:
        """Position (rows, 3) and orientation (rows, 3, 3) of the tip at joint positions q."""
        self._qpos[:, self._dofs] = q
        self._batch.forward(stage=mujoco.mjtStage.mjSTAGE_POS)
        return self._tip.copy(), self._turn.reshape(-1, 3, 3).copy()

    def jacobian(self, tip: NDArray) -> NDArray:
        """Jacobian of the tip at the last `forward`, (rows, 6, joints)."""
        linear, angular = self._batch.jac(self._body, tip)
        return np.concatenate([linear[:, :, self._dofs], angular[:, :, self._dofs]], axis=1)

    def solve(
        self,
        q: NDArray,
        goal_pos: NDArray,
        goal_mat: NDArray,
        turn_weight: float,
        iterations: int = 2,
        damping: float = 0.02,
        largest_step: float = 0.35,
        position_first: int = 0,
    ) -> NDArray:
        """Move joint positions towards a tip pose, within the joints' limits.

        Args:
            q: Where to start, (rows, joints), rad.
            goal_pos: Wanted tip position, (rows, 3), metres.
            goal_mat: Wanted tip orientation, (3, 3) or (rows, 3, 3).
            turn_weight: Metres of error that one radian counts for.
            iterations: Newton steps.
            damping: Larger is calmer near singular poses, smaller is more exact.
            largest_step: Most that a joint may move in one iteration (rad).
            position_first: Correct the position alone at the end, where an arm of fewer than six
                joints, or one at its limits, cannot have both.
        """
        weights = [turn_weight] * iterations + [0.0] * position_first
        free = np.ones_like(q)
        for weight in weights:
            tip, turn = self.forward(q)
            error = np.concatenate([goal_pos - tip, weight * turn_between(turn, goal_mat)], axis=1)
            jac = self.jacobian(tip)
            jac[:, 3:] *= weight
            jac *= free[:, None, :]
            wanted = q + limited(damped_step(jac, error, damping), largest_step)
            q = np.clip(wanted, self.low, self.high)
            # A joint that ran into its limit cannot help in the next iteration.
            free = free * (wanted == q)
        return q

    def approach(
        self, q: NDArray, goal_pos: NDArray, goal_mat: NDArray, how: Approach
    ) -> tuple[NDArray, NDArray[np.bool_]]:
        """Move joint positions towards a tip pose, no further than one step may go.

        Returns the new joint positions, and which rows have got where the step ends. Rows that
        are there are left alone, so that a row's bits do not depend on the others.
        """
        tip, turn = self.forward(q)
        pos, mat = _next_pose(tip, turn, goal_pos, goal_mat, how)
        error = pose_error(tip, turn, pos, mat)
        home = how.pull * (np.asarray(how.posture) - q)
        free = np.ones_like(q)
        is_there = np.zeros(len(q), np.bool_)
        for k in range(how.iterations):
            jac = self.jacobian(tip)
            wanted = q + damped_step(jac * free[:, None, :], error, how.damping, home * (k == 0))
            clipped = np.clip(wanted, self.low, self.high)
            # A joint that ran into its limit cannot help in the next iteration.
            free = free * (wanted == clipped)
            q = np.where(is_there[:, None], q, clipped)
            tip, turn = self.forward(q)
            error = pose_error(tip, turn, pos, mat)
            is_there = is_small(error, how.exact_m, how.exact_rad)
            if k + 1 >= how.at_least and is_there.all():
                break
        return q, is_small(error, how.close_m, how.close_rad)

    def is_at(self, q: NDArray, pos: NDArray, mat: NDArray) -> bool:
        """Whether the tip of the first row is at a pose, within half a millimetre."""
        tip, turn = self.forward(q)
        return bool(is_small(pose_error(tip, turn, pos, mat), 5e-4, 2e-3)[0])


@dataclass(frozen=True)
class Approach:
    """How far one step may go, and how exact it must be."""

    posture: tuple[float, ...]
    """Joint positions to which an arm with joints to spare drifts (rad)."""
    most_m: float = 0.05
    most_rad: float = 0.35
    iterations: int = 3
    at_least: int = 1
    damping: float = 0.01
    pull: float = 0.03
    """Part of the way to the posture that is made in each step, as far as the tip allows it."""
    exact_m: float = 2e-4
    exact_rad: float = 1e-3
    close_m: float = 2e-3
    close_rad: float = 0.01
    """Beyond this the step counts as impossible."""


def _next_pose(
    tip: NDArray, turn: NDArray, pos: NDArray, mat: NDArray, how: Approach
) -> tuple[NDArray, NDArray]:
    """The pose at the end of one step of a straight line to the goal, turning evenly."""
    way = pos - tip
    far = np.sqrt(way[:, 0] ** 2 + way[:, 1] ** 2 + way[:, 2] ** 2)[:, None]
    start = mats_quat(turn)
    lean, length = chord(start, mats_quat(mat))
    most = how.most_rad / 2
    part = np.minimum(how.most_m / np.maximum(far, how.most_m), most / np.maximum(length, most))
    return tip + way * part, quat_mat(unit(start + lean * part))


def pose_error(tip: NDArray, turn: NDArray, pos: NDArray, mat: NDArray) -> NDArray:
    """What is missing to a pose: metres, then a rotation vector, (rows, 6)."""
    return np.concatenate([pos - tip, turn_between(turn, mat)], axis=1)


def is_small(error: NDArray, m: float, rad: float) -> NDArray[np.bool_]:
    """Whether every part of a pose error is below its bound."""
    return (np.abs(error[:, :3]).max(1) < m) & (np.abs(error[:, 3:]).max(1) < rad)


def damped_step(
    jac: NDArray, error: NDArray, damping: float, drift: NDArray | None = None
) -> NDArray:
    """The smallest change of the joints, beside a `drift`, that removes the error: (rows, joints).

    Without a drift the system of the joints is solved, which is the smaller one for an arm of
    five; with one that of the six numbers of the error.
    """
    if drift is None:
        turned = np.ascontiguousarray(np.swapaxes(jac, 1, 2))
        square = turned @ jac + damping**2 * np.eye(jac.shape[2])
        return np.linalg.solve(square, turned @ error[:, :, None])[:, :, 0]
    # Added up joint by joint: a matrix product's last bits depend on where a row's numbers lie.
    square = damping**2 * np.eye(6) + np.zeros((len(jac), 6, 6))
    rest = error.copy()
    for k in range(jac.shape[2]):
        column = jac[:, :, k]
        square += column[:, :, None] * column[:, None, :]
        rest -= column * drift[:, k : k + 1]
    pull = np.linalg.solve(square, rest[:, :, None])[:, :, 0]
    step = drift.copy()
    for k in range(6):
        step += jac[:, k] * pull[:, k : k + 1]
    return step


def limited(step: NDArray, largest: float) -> NDArray:
    """Shorten steps as a whole until no joint moves further: cutting joints would bend the path."""
    longest = np.abs(step).max(axis=1, keepdims=True)
    return step * np.minimum(1.0, largest / np.maximum(longest, 1e-9))
