"""Poses of a model from which splats are learned: near states that occur, and everywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.support import geom_colours, still_bodies
from maniple.sim.kinematics import PLACES
from maniple.splat.cloud import multiply_quats

HINGE, SLIDE, BALL, FREE = (
    int(kind)
    for kind in (
        mujoco.mjtJoint.mjJNT_HINGE,
        mujoco.mjtJoint.mjJNT_SLIDE,
        mujoco.mjtJoint.mjJNT_BALL,
        mujoco.mjtJoint.mjJNT_FREE,
    )
)
LIFT_M, SHIFT_M = 0.20, 0.12
"""How far things that lie about are moved from where they were seen."""


class Moment(NamedTuple):
    """A state of a model, as far as places depend on it."""

    qpos: NDArray
    mocap_pos: NDArray
    mocap_quat: NDArray

    @classmethod
    def of(cls, data: mujoco.MjData) -> Moment:
        """Copy the state of an MjData."""
        return cls(data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy())


class PoseSource:
    """Rows of a model in given states: what renderers draw while splats are learned."""

    threads = 1
    scene: str | None = None

    def __init__(
        self, model: mujoco.MjModel, moments: Sequence[Moment], jitter_seed: int | None = None
    ) -> None:
        """Work out where everything is.

        Args:
            model: The model.
            moments: A state for each row.
            jitter_seed: If given, still cameras of every second row stand a little elsewhere.
        """
        self.model = model
        self._data = mujoco.MjData(model)
        self._moments = moments
        rows: dict[str, list[NDArray]] = {name: [] for name in PLACES}
        for row in range(len(moments)):
            self.load(row)
            for name in PLACES:
                rows[name].append(getattr(self._data, name).copy())
        self._places = {name: np.array(arrays) for name, arrays in rows.items()}
        if jitter_seed is not None:
            self._jitter(np.random.default_rng(jitter_seed))

    def __len__(self) -> int:
        return len(self._moments)

    def field(self, name: str) -> tuple[NDArray, bool]:
        """Return an array, and whether it has a part for each row."""
        if name in PLACES:
            return self._places[name], True
        if name == "geom_rgba":
            return geom_colours(self.model), False
        return getattr(self.model, name), False

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return the model and a row's state."""
        data, moment = self._data, self._moments[row]
        data.qpos[:] = moment.qpos
        data.mocap_pos[:], data.mocap_quat[:] = moment.mocap_pos, moment.mocap_quat
        mujoco.mj_kinematics(self.model, data)
        mujoco.mj_comPos(self.model, data)
        mujoco.mj_camlight(self.model, data)
        return self.model, data

    def _jitter(self, rng: np.random.Generator) -> None:
        """Move cameras by a fifth of their height, looking at the same point as before."""
        still = still_bodies(self.model)[self.model.cam_bodyid]
        pos, mat = self._places["cam_xpos"], self._places["cam_xmat"]
        for row in range(1, len(pos), 2):
            for camera in np.flatnonzero(still):
                turn = mat[row, camera].reshape(3, 3)
                far = max(0.3, 0.8 * pos[row, camera, 2])
                look_at = pos[row, camera] - far * turn[:, 2]
                eye = pos[row, camera] + 0.2 * far * rng.uniform(-1, 1, 3)
                back = eye - look_at
                back /= np.linalg.norm(back)
                right = np.cross(turn[:, 1], back)
                right /= np.linalg.norm(right)
                pos[row, camera] = eye
                mat[row, camera] = np.stack([right, np.cross(back, right), back], 1).ravel()


def draw_moments(
    model: mujoco.MjModel, seen: Sequence[Moment], count: int, seed: int = 0
) -> list[Moment]:
    """Draw states around those that were seen."""
    rng = np.random.default_rng(seed)
    return [_moved(model, seen[k % len(seen)], rng, k) for k in range(count)]


def _moved(model: mujoco.MjModel, moment: Moment, rng: np.random.Generator, k: int) -> Moment:
    qpos = moment.qpos.copy()
    # Every fourth state is far from any that was seen.
    reach = 0.35 if k % 4 == 3 else 0.12
    for joint in range(model.njnt):
        at, kind = int(model.jnt_qposadr[joint]), int(model.jnt_type[joint])
        if kind in (HINGE, SLIDE):
            low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-1.5, 1.5)
            moved = qpos[at] + rng.normal() * reach * (high - low)
            qpos[at] = np.clip(moved, low, high) if model.jnt_limited[joint] else moved
        elif kind == BALL:
            qpos[at : at + 4] = _turned(qpos[at : at + 4], rng, False)
        else:
            qpos[at : at + 3] += _shift(rng)
            qpos[at + 3 : at + 7] = _turned(qpos[at + 3 : at + 7], rng, rng.random() < 0.5)
    pos, quat = moment.mocap_pos.copy(), moment.mocap_quat.copy()
    for body in range(len(pos)):
        pos[body] += _shift(rng) * [1, 1, 0.2]
    return Moment(qpos, pos, quat)


def _shift(rng: np.random.Generator) -> NDArray:
    lift = LIFT_M * rng.random() if rng.random() < 0.4 else 0.0
    return np.array([*rng.uniform(-SHIFT_M, SHIFT_M, 2), lift])


def _turned(quat: NDArray, rng: np.random.Generator, is_upright: bool) -> NDArray:
    """Turn by any angle, about the vertical or about anything."""
    if is_upright:
        half = rng.uniform(-np.pi, np.pi) / 2
        turn = np.array([np.cos(half), 0.0, 0.0, np.sin(half)])
    else:
        turn = rng.normal(size=4)
    new = multiply_quats(turn / np.linalg.norm(turn), quat)
    return new / np.linalg.norm(new)
