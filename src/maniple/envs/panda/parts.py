"""Build what stands on the table: fixtures that are put somewhere, and things that move freely.

Fixtures and their drawers, doors and lids never collide with each other, only with robots and
things: furniture does not jam.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from maniple.sim.robots.chain import BOX, CYLINDER, HINGE, ROBOT_BIT, SLIDE, SPHERE, WORLD_BIT, Vec3
from maniple.sim.rotation import euler_mat, mat_quat
from maniple.sim.scene import Rgba

FIXTURE_BITS = (0, WORLD_BIT | ROBOT_BIT)
THING_BITS = (WORLD_BIT, WORLD_BIT)
NO_BITS = (0, 0)


def add_fixture(spec: mujoco.MjSpec, name: str) -> mujoco.MjsBody:
    """Add a body that stays where an episode puts it; doors and drawers hang on it."""
    return spec.worldbody.add_body(name=name, mocap=True)


def add_thing(spec: mujoco.MjSpec, name: str) -> mujoco.MjsBody:
    """Add a free body; its joint has the same name."""
    body = spec.worldbody.add_body(name=name)
    body.add_freejoint(name=name)
    return body


def add_moving(
    parent: mujoco.MjsBody,
    name: str,
    pos: Vec3,
    axis: Vec3,
    limits: tuple[float, float],
    slides: bool = False,
    damping: float = 0.5,
    friction: float = 0.0,
    spring: float = 0.0,
) -> mujoco.MjsBody:
    """Add a drawer, door, lid or button to a fixture; its joint has the same name.

    Args:
        parent: What it hangs on.
        name: Of the body and of its joint.
        pos: Of its frame, where the joint is too, in the parent's frame (metres).
        axis: Of the joint, in the parent's frame.
        limits: Of the joint (metres or rad).
        slides: Whether it moves along the axis instead of turning about it.
        damping: What resists its speed (N.s/m or N.m.s/rad).
        friction: What resists its motion at any speed (N or N.m).
        spring: What pulls it back to 0 (N/m or N.m/rad).
    """
    body = parent.add_body(name=name, pos=pos)
    joint = body.add_joint(
        name=name, type=SLIDE if slides else HINGE, axis=axis, range=limits, limited=True
    )
    joint.damping.flat[0], joint.frictionloss, joint.armature = damping, friction, 0.005
    joint.stiffness.flat[0] = spring
    return body


def add_box(
    body: mujoco.MjsBody,
    half: Sequence[float],
    pos: Sequence[float] = (0, 0, 0),
    rgba: Rgba = (0.8, 0.8, 0.8, 1),
    kg: float = 0.0,
    name: str = "",
    bits: tuple[int, int] | None = None,
    euler: Vec3 = (0.0, 0.0, 0.0),
    friction: float = 1.0,
) -> None:
    """Add a box to a body; `name` makes it paintable, as in 'cup.side'."""
    _add(body, BOX, half, pos, rgba, kg, name, bits, euler, friction)


def add_rod(
    body: mujoco.MjsBody,
    radius: float,
    half: float,
    pos: Sequence[float] = (0, 0, 0),
    rgba: Rgba = (0.8, 0.8, 0.8, 1),
    kg: float = 0.0,
    name: str = "",
    bits: tuple[int, int] | None = None,
    euler: Vec3 = (0.0, 0.0, 0.0),
    friction: float = 1.0,
) -> None:
    """Add an upright cylinder to a body."""
    _add(body, CYLINDER, (radius, half, 0), pos, rgba, kg, name, bits, euler, friction)


def add_ball(
    body: mujoco.MjsBody,
    radius: float,
    pos: Sequence[float] = (0, 0, 0),
    rgba: Rgba = (0.8, 0.8, 0.8, 1),
    kg: float = 0.0,
    name: str = "",
    bits: tuple[int, int] | None = None,
) -> None:
    """Add a ball to a body."""
    _add(body, SPHERE, (radius, 0, 0), pos, rgba, kg, name, bits, (0, 0, 0), 1.0)


def add_ring(
    body: mujoco.MjsBody,
    inner: float,
    wall: float,
    half: float,
    pos: Vec3,
    rgba: Rgba,
    kg: float = 0.0,
    name: str = "",
    sides: int = 8,
) -> None:
    """Add a round wall of flat boards: a cup's side, a jar's, a socket's."""
    length = (inner + wall) * np.tan(np.pi / sides) * 1.02
    for k in range(sides):
        angle = 2 * np.pi * k / sides
        out = inner + wall / 2
        at = (pos[0] + out * np.cos(angle), pos[1] + out * np.sin(angle), pos[2])
        label = f"{name}{k}" if name else ""
        add_box(
            body, (wall / 2, length, half), at, rgba, kg / sides, label, euler=(0, 0, float(angle))
        )


def _add(body, kind, size, pos, rgba, kg, name, bits, euler, friction) -> None:
    if bits is None:
        bits = THING_BITS if _is_free(body) else FIXTURE_BITS
    # The fingers bring torsional friction along; on the table it would only cost time.
    geom = body.add_geom(type=kind, size=size, pos=pos, rgba=rgba, condim=3)
    geom.name = name
    geom.quat = mat_quat(euler_mat(euler))
    geom.friction = [friction, 0.01, 0.001]
    geom.contype, geom.conaffinity = bits
    geom.group = 1 if bits == NO_BITS else 2
    if kg:
        geom.mass = kg
    elif bits == NO_BITS:
        geom.mass = 1e-5


def _is_free(body: mujoco.MjsBody) -> bool:
    return any(int(j.type) == int(mujoco.mjtJoint.mjJNT_FREE) for j in body.joints)
