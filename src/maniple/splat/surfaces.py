"""Points all over the surface of a geom, evenly spread."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.reference import BOX, CAPSULE, CYLINDER, ELLIPSOID, PLANE, SPHERE

MESH = int(mujoco.mjtGeom.mjGEOM_MESH)
KINDS = (PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)
ENDLESS_M = 2.0
"""Half the side of a plane that has no end."""
# Powers of the inverse of the root of x^4 = x + 1: the most even sequence in three dimensions.
_STEP = 1.0 / 1.2207440846057596 ** np.arange(1, 4)


class Points(NamedTuple):
    """Points of a surface, in the frame of the geom."""

    at: NDArray[np.float64]
    normal: NDArray[np.float64]
    area: NDArray[np.float64]
    """Square metres that each point stands for."""
    draw: NDArray[np.float64]
    """A number from 0 to 1: points below any threshold are evenly spread, too."""


def surface_points(model: mujoco.MjModel, geom: int, count: int) -> Points:
    """Return `count` points of a geom."""
    u, v, draw = ((0.5 + np.arange(1, count + 1)[:, None] * _STEP) % 1.0).T
    kind, size = int(model.geom_type[geom]), model.geom_size[geom].astype(np.float64)
    if kind == MESH:
        at, normal, area = _mesh(model, int(model.geom_dataid[geom]), u, v)
    elif kind == PLANE:
        half = np.where(size[:2] > 0, size[:2], ENDLESS_M)
        at = np.stack([(2 * u - 1) * half[0], (2 * v - 1) * half[1], 0 * u], 1)
        normal, area = np.tile([0.0, 0.0, 1.0], (count, 1)), 4 * half[0] * half[1]
    elif kind == BOX:
        at, normal, area = _box(size, u, v)
    elif kind in (SPHERE, ELLIPSOID):
        half = np.full(3, size[0]) if kind == SPHERE else size
        ball = _ball(u, v)
        at, normal = ball * half, ball / half
        # Where a ball is stretched, each of its points stands for more.
        stretch = np.linalg.norm(normal, axis=1) * np.prod(half)
        return Points(at, _unit(normal), 4 * np.pi / count * stretch, draw)
    else:
        at, normal, area = _round(kind, size, u, v)
    return Points(at, normal, np.full(count, area / count), draw)


def _ball(u: NDArray, v: NDArray) -> NDArray:
    z, turn = 1 - 2 * u, 2 * np.pi * v
    flat = np.sqrt(np.maximum(1 - z * z, 0))
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), z], 1)


def _split(u: NDArray, areas: NDArray) -> tuple[NDArray[np.intp], NDArray]:
    """Divide numbers from 0 to 1 among faces by area; return the face, and the place in it."""
    ends = np.cumsum(areas) / np.sum(areas)
    face = np.minimum(np.searchsorted(ends, u, side="right"), len(areas) - 1)
    start = np.concatenate([[0.0], ends[:-1]])
    return face, (u - start[face]) / np.maximum(ends[face] - start[face], 1e-12)


def _box(half: NDArray, u: NDArray, v: NDArray) -> tuple[NDArray, NDArray, float]:
    areas = np.repeat([4 * half[1] * half[2], 4 * half[2] * half[0], 4 * half[0] * half[1]], 2)
    face, inside = _split(u, areas)
    axis, sign = face // 2, np.where(face % 2, 1.0, -1.0)
    at, normal, n = np.empty((len(u), 3)), np.zeros((len(u), 3)), np.arange(len(u))
    at[n, axis] = sign * half[axis]
    for shift, where in ((1, inside), (2, v)):
        other = (axis + shift) % 3
        at[n, other] = (2 * where - 1) * half[other]
    normal[n, axis] = sign
    return at, normal, float(areas.sum())


def _round(kind: int, size: NDArray, u: NDArray, v: NDArray) -> tuple[NDArray, NDArray, float]:
    """Capsules and cylinders along z: side, and both ends together."""
    radius, half = size[0], size[1]
    end_area = 4 * np.pi * radius**2 if kind == CAPSULE else 2 * np.pi * radius**2
    areas = np.array([4 * np.pi * radius * half, end_area])
    face, inside = _split(u, areas)
    turn = 2 * np.pi * v
    around = np.stack([np.cos(turn), np.sin(turn), 0 * turn], 1)
    side = radius * around + np.stack([0 * u, 0 * u, (2 * inside - 1) * half], 1)
    sign = np.where(inside < 0.5, 1.0, -1.0)
    if kind == CAPSULE:
        cap_normal = _ball(inside, v)
        cap = radius * cap_normal + np.stack([0 * u, 0 * u, sign * half], 1)
    else:
        cap_normal = np.stack([0 * u, 0 * u, sign], 1)
        far = np.sqrt((2 * inside) % 1.0)
        cap = radius * far[:, None] * around + half * cap_normal
    is_side = (face == 0)[:, None]
    normal = np.where(is_side, around, cap_normal)
    return np.where(is_side, side, cap), normal, float(areas.sum())


def _mesh(
    model: mujoco.MjModel, mesh: int, u: NDArray, v: NDArray
) -> tuple[NDArray, NDArray, float]:
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = model.mesh_vert[first : first + count].astype(np.float64)
    start, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    a, b, c = (vertices[model.mesh_face[start : start + faces, k]] for k in range(3))
    cross = np.cross(b - a, c - a)
    areas = 0.5 * np.linalg.norm(cross, axis=1)
    face, inside = _split(u, areas)
    root = np.sqrt(inside)[:, None]
    at = (1 - root) * a[face] + root * (1 - v[:, None]) * b[face] + root * v[:, None] * c[face]
    return at, _unit(cross[face]), float(areas.sum())


def _unit(vectors: NDArray) -> NDArray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
