"""A Piper on the back of a Unitree Go2, whose base stands or moves in the plane."""

from __future__ import annotations

from functools import partial

import mujoco
import numpy as np

from maniple.sim.robots.chain import (
    BOX,
    CAPSULE,
    CYLINDER,
    ROBOT_BIT,
    SPHERE,
    TRUNK_BIT,
    WORLD_BIT,
    Vec3,
)
from maniple.sim.robots.mobile_piper import BASE, add_planar_base
from maniple.sim.robots.piper import GRIPPER_RANGE, PIPER, START, STEPS, add_piper, piper_groups
from maniple.sim.robots.robot import Robot

STAND_M = 0.27
"""Height of the trunk's middle when the dog stands."""
MOUNT: Vec3 = (0.05, 0.0, 0.057)
TRUNK_KG, LEG_KG = 6.921, 2.07
HIP_X, HIP_Y, THIGH_Y, LENGTH = 0.1934, 0.0465, 0.0955, 0.213
THIGH_RAD, CALF_RAD = 0.9, -1.8
SPEED = (0.6, 1.0)
"""Ahead and turning (m/s, rad/s)."""
WHITE, DARK, SILVER = (0.88, 0.89, 0.90, 1.0), (0.14, 0.14, 0.16, 1.0), (0.60, 0.62, 0.65, 1.0)


def add_go2_piper(spec: mujoco.MjSpec, pos: Vec3, base: bool = False) -> None:
    """Add the dog on its four posed legs, and the arm on its back."""
    middle = (pos[0], pos[1], pos[2] + STAND_M)
    trunk = add_planar_base(spec, "trunk", middle, TRUNK_KG + 4 * LEG_KG, base)
    _add(trunk, BOX, (0.1881, 0.04675, 0.057), (0, 0, 0), WHITE, TRUNK_KG - 0.6)
    _add(trunk, BOX, (0.150, 0.075, 0.040), (-0.01, 0, -0.004), DARK, 0.2)
    _add(trunk, CYLINDER, (0.05, 0.045), (0.285, 0, 0.01), WHITE, 0.2)
    _add(trunk, SPHERE, (0.047,), (0.293, 0, -0.06), DARK, 0.2)
    for x in (HIP_X, -HIP_X):
        for side in (1.0, -1.0):
            _add_leg(trunk, x, side)
    add_piper(spec, MOUNT, parent=trunk)


def _add_leg(trunk: mujoco.MjsBody, x: float, side: float) -> None:
    """Draw one leg, bent as the dog stands."""
    hip = np.array([x, side * HIP_Y, 0.0])
    shoulder = hip + [0, side * THIGH_Y, 0]
    knee = shoulder + LENGTH * np.array([-np.sin(THIGH_RAD), 0, -np.cos(THIGH_RAD)])
    bend = THIGH_RAD + CALF_RAD
    foot = knee + LENGTH * np.array([-np.sin(bend), 0, -np.cos(bend)])
    _limb(trunk, hip, shoulder, 0.042, SILVER, 0.678)
    _limb(trunk, shoulder, knee, 0.024, WHITE, 1.152)
    _limb(trunk, knee, foot, 0.014, DARK, 0.20)
    _limb(trunk, foot, foot + [0, 0, 0.002], 0.022, DARK, 0.04)


def _limb(trunk: mujoco.MjsBody, start, end, radius: float, rgba, kg: float) -> None:
    geom = trunk.add_geom(type=CAPSULE, size=[radius, 0, 0], rgba=rgba, mass=kg)
    geom.fromto = [*start, *end]
    geom.contype = geom.conaffinity = 0


def _add(trunk: mujoco.MjsBody, kind, size: tuple[float, ...], pos: Vec3, rgba, kg: float) -> None:
    geom = trunk.add_geom(type=kind, size=[*size, 0.0, 0.0][:3], pos=pos, rgba=rgba, mass=kg)
    geom.contype, geom.conaffinity = ROBOT_BIT | TRUNK_BIT, WORLD_BIT


def go2_piper(base: bool = False) -> Robot:
    """Return the robot on a base that stands or is driven."""
    return Robot(
        name="go2_piper",
        add=partial(add_go2_piper, base=base),
        groups={**piper_groups(("",)), **({"base": BASE} if base else {})},
        home=START + (0.0, 0.0, 0.0) * base,
        tips={"arm": "tip"},
        grippers={"gripper": GRIPPER_RANGE},
        down_rpy=PIPER.down_rpy,
        base="planar" if base else "fixed",
        steps=STEPS,
        base_speed=SPEED if base else (0.0, 0.0),
    )


GO2_PIPER = go2_piper()
