"""Triangles of MuJoCo's geoms, joined by body and colour."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.support import geom_colours, still_bodies, visible_geoms
from maniple.sim.rotation import quat_mat

AROUND = 20
"""Corners of a circle."""
GROUND_M, WALL_M = 0.5, 2.0
"""From these half sizes on a plane is ground, and a box a wall: both are not shown per row."""
ENDLESS_M = 5.0
"""Half the side of a plane that has no end."""


class Triangles(NamedTuple):
    """Corners (n, 3) in metres, and which three of them make a triangle (m, 3)."""

    corners: NDArray[np.float32]
    faces: NDArray[np.uint32]


class Part(NamedTuple):
    """Geoms of one body that have one colour."""

    body: int
    geoms: tuple[int, ...]
    rgba: NDArray[np.float32]
    triangles: Triangles
    """In the frame of the body."""
    is_shared: bool
    """It is ground or a wall: rows that stand side by side do not each have one."""


def parts_of(model: mujoco.MjModel) -> list[Part]:
    """Join the visible geoms of a model by body and colour."""
    colours = geom_colours(model)
    groups: dict[tuple, list[int]] = {}
    for geom in np.flatnonzero(visible_geoms(model)).tolist():
        key = (int(model.geom_bodyid[geom]), tuple(colours[geom].tolist()), is_shared(model, geom))
        groups.setdefault(key, []).append(geom)
    found = []
    for (body, rgba, floor), geoms in groups.items():
        shapes = [_in_body(model, geom) for geom in geoms]
        shapes = [shape for shape in shapes if shape is not None]
        if shapes:
            colour = np.array(rgba, np.float32)
            found.append(Part(body, tuple(geoms), colour, _joined(shapes), floor))
    return found


def is_shared(model: mujoco.MjModel, geom: int) -> bool:
    """Tell whether a geom is ground or a wall."""
    if not still_bodies(model)[model.geom_bodyid[geom]]:
        return False
    size = model.geom_size[geom]
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
        return bool(size[:2].min() <= 0 or size[:2].max() >= GROUND_M)
    return bool(model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_BOX and size.max() >= WALL_M)


def _in_body(model: mujoco.MjModel, geom: int) -> Triangles | None:
    made = triangles_of(model, geom)
    if made is None:
        return None
    turn = quat_mat(model.geom_quat[geom][None])[0]
    corners = made.corners @ turn.T + model.geom_pos[geom]
    return Triangles(corners.astype(np.float32), made.faces)


def triangles_of(model: mujoco.MjModel, geom: int) -> Triangles | None:
    """Return the triangles of a geom in its own frame; None where it has no surface of its own."""
    kind, size = mujoco.mjtGeom(int(model.geom_type[geom])), model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        return _mesh(model, int(model.geom_dataid[geom]))
    make = SHAPES.get(kind)
    return None if make is None else make(np.asarray(size, float))


def _mesh(model: mujoco.MjModel, mesh: int) -> Triangles:
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    start, faces = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return Triangles(
        np.array(model.mesh_vert[first : first + count], np.float32),
        np.array(model.mesh_face[start : start + faces], np.uint32),
    )


def _box(size: NDArray) -> Triangles:
    """A box whose sides have corners of their own: shared ones would be shaded round."""
    corners, faces = [], []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (-1.0, 1.0):
            square = np.zeros((4, 3))
            square[:, axis] = side
            square[:, u] = np.array([-1, 1, 1, -1]) * side
            square[:, v] = [-1, -1, 1, 1]
            start = 4 * len(faces) // 2
            corners.append(square * size)
            faces += [(start, start + 1, start + 2), (start, start + 2, start + 3)]
    return Triangles(np.concatenate(corners).astype(np.float32), np.array(faces, np.uint32))


def _plane(size: NDArray) -> Triangles:
    half = np.where(size[:2] > 0, size[:2], ENDLESS_M)
    corners = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]]) * [*half, 1]
    return Triangles(corners.astype(np.float32), np.array([[0, 1, 2], [0, 2, 3]], np.uint32))


def _ball(size: NDArray) -> Triangles:
    """A sphere or, with three different half axes, an ellipsoid."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, AROUND // 2 + 1)
    return _turned(np.stack([np.cos(angle), np.sin(angle)], 1), np.asarray(size[:3]))


def _sphere(size: NDArray) -> Triangles:
    return _ball(np.full(3, size[0]))


def _capsule(size: NDArray) -> Triangles:
    angle = np.linspace(0, np.pi / 2, AROUND // 4 + 1)
    top = np.stack([size[0] * np.cos(angle), size[1] + size[0] * np.sin(angle)], 1)
    bottom = top[::-1] * [1, -1]
    return _turned(np.concatenate([bottom, top]))


def _cylinder(size: NDArray) -> Triangles:
    """A tube with two lids, each with corners of its own."""
    radius, half = size[0], size[1]
    tube = _turned(np.array([[radius, -half], [radius, half]]))
    lids = [_turned(np.array([[0.0, -half], [radius, -half]]))]
    lids.append(_turned(np.array([[radius, half], [0.0, half]])))
    return _joined([tube, *lids])


def _turned(profile: NDArray, scale: NDArray | float = 1.0) -> Triangles:
    """Turn a line of (radius, height), from below to above, about the z axis."""
    angle = np.linspace(0, 2 * np.pi, AROUND, endpoint=False)
    around = np.stack([np.cos(angle), np.sin(angle)], 1)
    corners = np.empty((len(profile), AROUND, 3))
    corners[:, :, :2] = profile[:, None, :1] * around
    corners[:, :, 2] = profile[:, 1:]
    faces = []
    for ring in range(len(profile) - 1):
        a = ring * AROUND + np.arange(AROUND)
        b = ring * AROUND + (np.arange(AROUND) + 1) % AROUND
        faces += [np.stack([a, b, b + AROUND], 1), np.stack([a, b + AROUND, a + AROUND], 1)]
    flat = corners.reshape(-1, 3) * scale
    return Triangles(flat.astype(np.float32), np.concatenate(faces).astype(np.uint32))


def _joined(shapes: list[Triangles]) -> Triangles:
    starts = np.cumsum([0, *[len(shape.corners) for shape in shapes[:-1]]])
    return Triangles(
        np.concatenate([shape.corners for shape in shapes]),
        np.concatenate(
            [shape.faces + start for shape, start in zip(shapes, starts, strict=True)]
        ).astype(np.uint32),
    )


SHAPES: dict[mujoco.mjtGeom, Callable[[NDArray], Triangles]] = {
    mujoco.mjtGeom.mjGEOM_PLANE: _plane,
    mujoco.mjtGeom.mjGEOM_SPHERE: _sphere,
    mujoco.mjtGeom.mjGEOM_CAPSULE: _capsule,
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: _ball,
    mujoco.mjtGeom.mjGEOM_CYLINDER: _cylinder,
    mujoco.mjtGeom.mjGEOM_BOX: _box,
}
