"""A wheeled base that carries two Pipers, of which one or both are driven."""

from __future__ import annotations

from functools import partial

import mujoco

from maniple.core.errors import BadConfig
from maniple.sim.robots.chain import BOX, CYLINDER, ROBOT_BIT, SPHERE, TRUNK_BIT, WORLD_BIT, Vec3
from maniple.sim.robots.piper import (
    GRIPPER_RANGE,
    PIPER,
    START,
    STEPS,
    add_piper,
    piper_groups,
)
from maniple.sim.robots.robot import Robot

LEFT, RIGHT = "", "right_"
"""Prefixes of names: the left arm is called as a single one."""
MOUNTS: dict[str, Vec3] = {LEFT: (0.0666, 0.2584, 0.879), RIGHT: (0.0675, -0.2577, 0.879)}
DARK, GREY, SILVER = (0.16, 0.17, 0.19, 1.0), (0.45, 0.47, 0.50, 1.0), (0.78, 0.79, 0.81, 1.0)
BASE = ("base_x", "base_y", "base_yaw")
SPEED = (0.5, 1.0)
"""Ahead and turning (m/s, rad/s)."""
CHASSIS_KG, FRAME_KG = 23.0, 5.0


def add_planar_base(
    spec: mujoco.MjSpec, name: str, pos: Vec3, mass_kg: float, is_driven: bool
) -> mujoco.MjsBody:
    """Add a body that stands still, or that velocity servos push about the floor."""
    body = spec.worldbody.add_body(name=name, pos=pos)
    if not is_driven:
        return body
    slide, hinge = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
    kinds = ((slide, (1, 0, 0)), (slide, (0, 1, 0)), (hinge, (0, 0, 1)))
    for joint, (kind, axis) in zip(BASE, kinds, strict=True):
        body.add_joint(name=joint, type=kind, axis=axis)
    for joint, force in zip(BASE, (400.0, 400.0, 150.0), strict=True):
        motor = spec.add_actuator(
            name=joint,
            target=joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            ctrlrange=(-3.0, 3.0),
            forcerange=(-force, force),
        )
        motor.set_to_velocity(kv=30.0 * mass_kg)
    return body


def add_mobile_piper(spec: mujoco.MjSpec, pos: Vec3, arms: int = 1, base: bool = False) -> None:
    """Add chassis, frame and both arms; what is not driven has no joints."""
    body = add_planar_base(spec, "chassis", pos, CHASSIS_KG + FRAME_KG, base)
    _add(body, BOX, (0.27, 0.20, 0.07), (0, 0, 0.245), GREY, kg=CHASSIS_KG - 4)
    _add(body, BOX, (0.29, 0.16, 0.02), (0, 0, 0.335), DARK, kg=1.0)
    for x in (-0.23, 0.23):
        for y in (-0.205, 0.205):
            half_pi = (0.7071068, 0.7071068, 0.0, 0.0)
            # The base slides: wheels that touched the floor would only rub.
            _add(body, CYLINDER, (0.082, 0.035), (x, y, 0.215), DARK, half_pi, 0.75, False)
    for x in (-0.20, 0.0):
        _add(body, BOX, (0.02, 0.02, 0.255), (x, 0, 0.61), SILVER, kg=0.6)
    _add(body, BOX, (0.12, 0.30, 0.012), (-0.03, 0, 0.867), SILVER, kg=FRAME_KG - 2.2)
    # The mast of the camera that looks over the table.
    _add(body, CYLINDER, (0.012, 0.26), (-0.10, 0, 1.13), SILVER, kg=0.5)
    _add(body, SPHERE, (0.028,), (-0.10, 0, 1.40), DARK, kg=0.5)
    for prefix, mount in MOUNTS.items():
        add_piper(spec, mount, prefix, body, is_driven=prefix == LEFT or arms == 2)


def _add(
    body: mujoco.MjsBody,
    kind: mujoco.mjtGeom,
    size: tuple[float, ...],
    pos: Vec3,
    rgba: tuple[float, float, float, float],
    quat_wxyz: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
    kg: float = 0.5,
    collides: bool = True,
) -> None:
    full = [*size, 0.0, 0.0][:3]
    geom = body.add_geom(type=kind, size=full, pos=pos, quat=quat_wxyz, rgba=rgba, mass=kg)
    bits = (ROBOT_BIT | TRUNK_BIT, WORLD_BIT) if collides else (0, 0)
    geom.contype, geom.conaffinity = bits


def mobile_piper(arms: int = 1, base: bool = False) -> Robot:
    """Return the robot with one or two driven arms, on a base that stands or is driven."""
    if arms not in (1, 2):
        raise BadConfig(f"arms is {arms}; mobile_piper has 1 or 2 that can be driven.")
    prefixes = (LEFT, RIGHT)[:arms]
    driven = {"base": BASE} if base else {}
    return Robot(
        name="mobile_piper",
        add=partial(add_mobile_piper, arms=arms, base=base),
        groups={**piper_groups(prefixes), **driven},
        home=START * arms + (0.0, 0.0, 0.0) * base,
        tips={f"{prefix}arm": f"{prefix}tip" for prefix in prefixes},
        grippers={f"{prefix}gripper": GRIPPER_RANGE for prefix in prefixes},
        down_rpy=PIPER.down_rpy,
        base="planar" if base else "fixed",
        steps={prefix + name: step for prefix in prefixes for name, step in STEPS.items()},
        base_speed=SPEED if base else (0.0, 0.0),
    )


MOBILE_PIPER = mobile_piper()
