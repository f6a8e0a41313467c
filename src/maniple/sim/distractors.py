"""More things that lie about in a scene: they are seen, and touch nothing."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.sim.paint import PALETTE

PREFIX = "distractor."
SHAPES = (
    (mujoco.mjtGeom.mjGEOM_BOX, (0.022, 0.016, 0.028)),
    (mujoco.mjtGeom.mjGEOM_CYLINDER, (0.018, 0.03, 0)),
    (mujoco.mjtGeom.mjGEOM_SPHERE, (0.022, 0, 0)),
    (mujoco.mjtGeom.mjGEOM_ELLIPSOID, (0.03, 0.02, 0.018)),
)
"""Shapes in turn, with their sizes in metres."""
HALF_HEIGHTS_M = (0.028, 0.03, 0.022, 0.018)
COLOURS = ("orange", "teal", "purple", "yellow", "azure", "rose", "olive", "white")
REACH_M, GRID_M = 0.9, 0.03
"""Places are looked for so far around the robot, on a grid."""
ROOM_M, NEAR_M, APART_M = 0.035, 0.25, 0.09
"""Free room around the task's things; how near one of them a thing lies; how far from another."""
LARGE_M = 0.35
"""Bodies are not taken for larger than this: a wall is a large body, too."""
BELOW = (0.0, 0.0, -5.0)
"""Where things are for which there is no room."""


def add_distractors(spec: mujoco.MjSpec, count: int) -> None:
    """Add things to a scene, out of sight until they are laid."""
    for k in range(count):
        kind, size = SHAPES[k % len(SHAPES)]
        colour = PALETTE[COLOURS[k % len(COLOURS)]]
        body = spec.worldbody.add_body(name=f"{PREFIX}{k}", pos=BELOW, mocap=True)
        body.add_geom(
            name=f"{PREFIX}{k}", type=kind, size=size, rgba=(*colour, 1.0), contype=0,
            conaffinity=0,
        )  # fmt: skip


class Distractors:
    """Finds room for them on whatever is flat near the things that a task is about."""

    def __init__(self, model: mujoco.MjModel, robot: set[int]) -> None:
        """Look for flat places; `robot` are the roots of its bodies."""
        names = (model.body(k).name for k in range(model.nbody))
        self._names = [name for name in names if name.startswith(PREFIX)]
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        self._base = np.mean([data.xpos[root][:2] for root in sorted(robot)], axis=0)
        self._spots = _flat_places(model, self._base)
        self._radius = {body: _radius(model, data, body) for body in range(model.nbody)}

    def lay(
        self, things: NDArray, bodies: Sequence[int], rng: Draws
    ) -> dict[str, NDArray[np.float64]]:
        """Draw a pose for each, (rows, 7).

        Args:
            things: Where the task's own things are, (rows, things, 3).
            bodies: Which bodies they are.
        """
        rows, count = len(things), len(self._names)
        turns, order = rng.uniform(-np.pi, np.pi, (count,)), rng.random((len(self._spots),))
        poses = np.zeros((rows, count, 7))
        poses[..., :3] = BELOW
        poses[..., 3], poses[..., 6] = np.cos(turns / 2), np.sin(turns / 2)
        radius = np.array([self._radius[body] for body in bodies])
        for row in range(rows):
            free = self._free(things[row], radius)
            for k in range(count):
                if not free.any():
                    break
                spot = self._spots[int(np.argmax(np.where(free, order[row], -1.0)))]
                lift = HALF_HEIGHTS_M[k % len(SHAPES)]
                poses[row, k, :3] = spot + np.array([0.0, 0.0, lift])
                free &= np.hypot(*(self._spots - spot)[:, :2].T) > APART_M
        return {name: poses[:, k] for k, name in enumerate(self._names)}

    def _free(self, things: NDArray, radius: NDArray) -> NDArray[np.bool_]:
        """Tell which places are free, near the task's things, and as high as most of these are."""
        spots = self._spots
        gaps = np.hypot(*np.moveaxis(spots[:, None, :2] - things[None, :, :2], -1, 0)) - radius
        free = (gaps > ROOM_M).all(1) if len(things) else np.ones(len(spots), np.bool_)
        near = free & (gaps.min(1) < NEAR_M) if len(things) else free
        if not near.any():
            near = free & (np.hypot(*(spots[:, :2] - self._base).T) < 0.5)
        if not near.any():
            return near
        heights, counts = np.unique(np.round(spots[near, 2], 2), return_counts=True)
        return near & (np.abs(spots[:, 2] - heights[np.argmax(counts)]) < 0.011)


def _flat_places(model: mujoco.MjModel, base: NDArray) -> NDArray[np.float64]:
    """Return places on what stands still and is flat around them, (places, 3)."""
    seen = copy.copy(model)
    moves = model.body_weldid[model.geom_bodyid] != 0
    moves |= model.body_mocapid[model.geom_bodyid] >= 0
    # A ray does not meet what cannot be seen.
    seen.geom_rgba[moves, 3] = 0.0
    seen.geom_matid[moves] = -1
    data = mujoco.MjData(seen)
    mujoco.mj_forward(seen, data)
    steps = np.arange(-REACH_M, REACH_M + GRID_M / 2, GRID_M)
    top = float(data.xpos[:, 2].max()) + 1.0
    heights = np.array([[_height(seen, data, base + (x, y), top) for y in steps] for x in steps])
    flat = np.isfinite(heights)
    for axis in (0, 1):
        for shift in (-1, 1):
            flat &= np.abs(heights - np.roll(heights, shift, axis)) < 1e-3
    xs, ys = np.nonzero(flat)
    return np.stack([base[0] + steps[xs], base[1] + steps[ys], heights[xs, ys]], axis=1)


def _height(model: mujoco.MjModel, data: mujoco.MjData, xy: NDArray, top: float) -> float:
    start, hit = np.array([*xy, top]), np.zeros(1, np.int32)
    down = np.array([0.0, 0.0, -1.0])
    distance = mujoco.mj_ray(model, data, start, down, None, 1, -1, hit)
    return top - distance if distance >= 0 else np.nan


def _radius(model: mujoco.MjModel, data: mujoco.MjData, root: int) -> float:
    """Return how far a body and what hangs on it reach sideways."""
    mine = model.body_rootid[model.geom_bodyid] == root
    if not mine.any():
        return 0.0
    away = np.hypot(*(data.geom_xpos[mine, :2] - data.xpos[root, :2]).T) + model.geom_rbound[mine]
    return float(min(away.max(), LARGE_M))
