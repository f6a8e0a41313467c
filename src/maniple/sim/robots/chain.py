"""Build an articulated robot out of links that all keep the base frame's axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import mujoco
import numpy as np

from maniple.sim.rotation import euler_mat, mat_quat

Vec3 = tuple[float, float, float]

BOX = mujoco.mjtGeom.mjGEOM_BOX
CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER
SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE
HINGE = mujoco.mjtJoint.mjJNT_HINGE
SLIDE = mujoco.mjtJoint.mjJNT_SLIDE

# Collision bits. Free objects and furniture are 1; a robot meets them but not itself, except
# that its hand meets its own base and upper arm.
WORLD_BIT, ROBOT_BIT, TRUNK_BIT = 1, 2, 4


class Shape(NamedTuple):
    """One primitive, placed in the base frame at q = 0 (metres)."""

    kind: mujoco.mjtGeom
    size: tuple[float, ...]
    pos: Vec3 | None = None
    ends: tuple[Vec3, Vec3] | None = None
    colour: str = "body"
    collides: bool = True
    friction: float = 1.0
    euler: Vec3 = (0.0, 0.0, 0.0)


class Drag(NamedTuple):
    """What resists a joint (N.m.s/rad, N.m, kg.m²)."""

    damping: float
    frictionloss: float = 0.0
    armature: float = 0.0


@dataclass(frozen=True)
class Link:
    """A body with the joint that moves it; positions in the base frame at q = 0 (metres).

    Without `inertia` its mass is shared out among its shapes, and MuJoCo works out the rest.
    """

    name: str
    parent: str | None
    anchor: Vec3
    mass: float
    com: Vec3 | None
    inertia: tuple[float, ...]
    shapes: tuple[Shape, ...]
    joint: str | None = None
    axis: Vec3 = (0.0, 0.0, 1.0)
    limits: tuple[float, float] = (0.0, 0.0)
    slides: bool = False
    drag: Drag | None = None
    part: str = "arm"
    """'trunk', 'arm' or 'hand': hands and trunks of one robot collide with each other."""
    sites: Mapping[str, Vec3] = field(default_factory=dict)


def add_chain(
    spec: mujoco.MjSpec,
    links: Sequence[Link],
    colours: Mapping[str, tuple[float, float, float, float]],
    pos: Vec3,
    quat_wxyz: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
    prefix: str = "",
    parent: mujoco.MjsBody | None = None,
    frozen: Mapping[str, float] | None = None,
) -> None:
    """Add the links to the world, the first one at `pos`.

    Args:
        prefix: Put before every name, where a robot has two such arms.
        parent: The body that the first link stands on; None: the world.
        frozen: Positions (rad, m) of joints that are left out: what nobody drives costs nothing.
    """
    frozen = frozen or {}
    bodies: dict[str, mujoco.MjsBody] = {}
    anchors = {link.name: np.array(link.anchor) for link in links}
    for link in links:
        if link.parent is None:
            on = spec.worldbody if parent is None else parent
            body = on.add_body(name=prefix + link.name, pos=pos, quat=quat_wxyz)
        else:
            offset = anchors[link.name] - anchors[link.parent]
            body = bodies[link.parent].add_body(name=prefix + link.name, pos=offset)
        bodies[link.name] = body
        if link.inertia:
            _add_inertia(body, link)
        if link.joint is not None and link.joint in frozen:
            _freeze(body, link, frozen[link.joint])
        else:
            _add_joint(body, link, prefix)
        for shape in link.shapes:
            _add_shape(body, link, shape, colours[shape.colour])
        for name, at in link.sites.items():
            body.add_site(
                name=prefix + name, pos=np.array(at) - link.anchor, size=[0.004] * 3, group=4
            )


def _freeze(body: mujoco.MjsBody, link: Link, position: float) -> None:
    """Turn or shift a body as its joint would."""
    if link.slides:
        body.pos = np.array(body.pos) + position * np.array(link.axis)
    else:
        axis = np.array(link.axis) / np.linalg.norm(link.axis)
        body.quat = [np.cos(position / 2), *(np.sin(position / 2) * axis)]


def _add_inertia(body: mujoco.MjsBody, link: Link) -> None:
    assert link.com is not None
    body.mass = link.mass
    body.ipos = np.array(link.com) - link.anchor
    full = (*link.inertia, 0.0, 0.0, 0.0) if len(link.inertia) == 3 else link.inertia
    body.fullinertia = full
    body.explicitinertial = True


def _add_joint(body: mujoco.MjsBody, link: Link, prefix: str) -> None:
    if link.joint is None:
        return
    joint = body.add_joint(
        name=prefix + link.joint,
        type=SLIDE if link.slides else HINGE,
        axis=link.axis,
        range=link.limits,
    )
    if link.drag is not None:
        joint.frictionloss, joint.armature = link.drag.frictionloss, link.drag.armature
        joint.damping.flat[0] = link.drag.damping


def _add_shape(body: mujoco.MjsBody, link: Link, shape: Shape, rgba: Sequence[float]) -> None:
    geom = body.add_geom(type=shape.kind, rgba=rgba, group=2 if shape.collides else 1)
    size = np.zeros(3)
    size[: len(shape.size)] = shape.size
    geom.size = size
    if not link.inertia:
        geom.mass = link.mass / len(link.shapes)
    if shape.ends is not None:
        geom.fromto = np.concatenate([np.array(end) - link.anchor for end in shape.ends])
    elif shape.pos is not None:
        geom.pos = np.array(shape.pos) - link.anchor
        geom.quat = mat_quat(euler_mat(shape.euler))
    geom.friction = [shape.friction, 0.01, 0.001]
    geom.contype, geom.conaffinity = _collision_bits(link, shape)


def _collision_bits(link: Link, shape: Shape) -> tuple[int, int]:
    if not shape.collides:
        return 0, 0
    if link.part == "trunk":
        return ROBOT_BIT | TRUNK_BIT, WORLD_BIT
    if link.part == "hand":
        return ROBOT_BIT, WORLD_BIT | TRUNK_BIT
    return ROBOT_BIT, WORLD_BIT
