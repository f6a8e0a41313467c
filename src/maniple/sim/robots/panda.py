"""Franka Panda as RLBench has it: seven joints, two fingers, the tip where its gripper is measured.

RLBench's arm is not the datasheet's: its joint 4 reads 4.08 degrees less at the same pose, and its
tip lies 0.1096 m beyond the hand.
"""

from __future__ import annotations

from math import cos, pi, radians, sin

import mujoco

from maniple.sim.robots.chain import (
    BOX,
    CAPSULE,
    CYLINDER,
    ROBOT_BIT,
    SLIDE,
    SPHERE,
    WORLD_BIT,
    Drag,
    Link,
    Shape,
    Vec3,
    add_chain,
)
from maniple.sim.robots.robot import GripperRange, Robot

COLOURS = {
    "body": (0.93, 0.93, 0.92, 1.0),
    "joint": (0.55, 0.57, 0.60, 1.0),
    "dark": (0.16, 0.16, 0.18, 1.0),
}
JOINT4_OFFSET = radians(4.08)
TIP_M = 0.1096
FINGER_M = 0.04
"""How far each finger opens."""
FINGER_SHUT_M = -0.02
"""Where a shutting finger is sent: beyond the middle, so that thin things are held too."""

DRAG = Drag(damping=1.0, armature=0.1)
# Gains of about critical damping: a step of the target is over within a tenth of a second.
SERVOS = ((4500, 120, 87), (4500, 120, 87), (3500, 80, 87), (3500, 80, 87),
          (2000, 28, 48), (2000, 28, 48), (2000, 25, 48))  # fmt: skip
FINGER_SERVO = (700.0, 35.0, 45.0)
# Fingers are light, and MuJoCo's contacts yield the more the lighter a body is.
STIFF_SOLREF, STIFF_SOLIMP = [0.01, 1.0], [0.98, 0.99, 0.001, 0.5, 2.0]
HALF_PI = pi / 2


def _hub(at: Vec3, half_m: float, radius_m: float = 0.058, along_y: bool = True) -> Shape:
    """Draw a joint's housing, which its neighbours cover: visual only."""
    euler = (HALF_PI, 0.0, 0.0) if along_y else (0.0, 0.0, 0.0)
    return Shape(CYLINDER, (radius_m, half_m), at, colour="joint", collides=False, euler=euler)


LINKS = (
    Link(
        "link0", None, (0, 0, 0), 0.629769, (-0.0410, -0.0001, 0.0500),
        (0.00315, 0.00388, 0.00429, 0, 0.00015, 0),
        shapes=(
            Shape(BOX, (0.105, 0.090, 0.030), (-0.030, 0, 0.030)),
            Shape(CYLINDER, (0.072, 0.070), (0, 0, 0.070)),
        ),
        part="trunk",
    ),
    Link(
        "link1", "link0", (0, 0, 0.333), 4.970684, (0.0039, 0.0021, 0.2854),
        (0.7034, 0.7066, 0.0091, -0.0001, 0.0068, 0.0192),
        shapes=(
            Shape(CAPSULE, (0.062,), ends=((0, 0, 0.185), (0, 0, 0.300))),
            _hub((0, 0, 0.333), 0.075),
        ),
        joint="joint1", axis=(0, 0, 1), limits=(-2.8973, 2.8973), part="trunk", drag=DRAG,
    ),
    Link(
        "link2", "link1", (0, 0, 0.333), 0.646926, (-0.0031, 0.0035, 0.3617),
        (0.0082, 0.0262, 0.0281, 0.0103, 0.0039, -0.0007),
        shapes=(Shape(CAPSULE, (0.060,), ends=((0, 0, 0.345), (0, 0, 0.470))),),
        joint="joint2", axis=(0, 1, 0), limits=(-1.7628, 1.7628), part="trunk", drag=DRAG,
    ),
    Link(
        "link3", "link2", (0, 0, 0.649), 3.228604, (0.0275, 0.0393, 0.5825),
        (0.0372, 0.0362, 0.0108, -0.0048, -0.0114, -0.0128),
        shapes=(
            Shape(CAPSULE, (0.058,), ends=((0, 0, 0.530), (0.020, 0, 0.600))),
            _hub((0.0825, 0, 0.649), 0.070, 0.052),
            Shape(CAPSULE, (0.045,), ends=((0.020, 0, 0.615), (0.075, 0, 0.645)), collides=False),
        ),
        joint="joint3", axis=(0, 0, 1), limits=(-2.8973, 2.8973), drag=DRAG,
    ),
    Link(
        "link4", "link3", (0.0825, 0, 0.649), 3.587895, (0.0293, -0.0275, 0.7534),
        (0.0259, 0.0283, 0.0196, 0.0013, 0.0078, -0.0086),
        shapes=(
            Shape(CAPSULE, (0.045,), ends=((0.0825, 0, 0.655), (0.015, 0, 0.735)), collides=False),
            Shape(CAPSULE, (0.056,), ends=((0.010, 0, 0.720), (0, 0, 0.780))),
        ),
        joint="joint4", axis=(0, -1, 0), limits=(-3.0718, -0.0698), drag=DRAG,
    ),
    Link(
        "link5", "link4", (0, 0, 1.033), 1.225946, (-0.0120, 0.0411, 0.9946),
        (0.0355, 0.0295, 0.0086, -0.0021, -0.0040, 0.0002),
        shapes=(
            Shape(CAPSULE, (0.052,), ends=((0, 0, 0.815), (0, 0.010, 0.860))),
            Shape(CAPSULE, (0.040,), ends=((0, 0.055, 0.880), (0, 0.055, 1.000))),
            _hub((0, 0, 1.033), 0.072, 0.050),
        ),
        joint="joint5", axis=(0, 0, 1), limits=(-2.8973, 2.8973), drag=DRAG,
    ),
    Link(
        "link6", "link5", (0, 0, 1.033), 1.666555, (0.0602, 0.0105, 1.0189),
        (0.00196, 0.00543, 0.00435, 0.00116, 0.00011, -0.00034),
        shapes=(
            Shape(CAPSULE, (0.047,), ends=((0.010, 0, 1.033), (0.075, 0, 1.033))),
            _hub((0.088, 0, 1.020), 0.035, 0.052, along_y=False),
        ),
        joint="joint6", axis=(0, -1, 0), limits=(-0.0175, 3.7525), drag=DRAG,
    ),
    Link(
        "link7", "link6", (0.088, 0, 1.033), 0.735522, (0.0985, 0.0043, 0.9714),
        (0.0125, 0.0100, 0.0048, 0.0004, 0.0012, -0.0007),
        shapes=(
            Shape(CYLINDER, (0.045, 0.028), (0.088, 0, 0.955), colour="body"),
            Shape(SPHERE, (0.022,), (0.118, 0.030, 0.955), colour="joint", collides=False),
        ),
        joint="joint7", axis=(0, 0, -1), limits=(-2.8973, 2.8973), part="hand", drag=DRAG,
    ),
)  # fmt: skip

JOINTS = tuple(link.joint for link in LINKS if link.joint)
FINGERS = ("finger1", "finger2")


def add_panda(spec: mujoco.MjSpec, pos: Vec3) -> None:
    """Add the arm, its hand, and nine position servos: seven joints and two fingers."""
    add_chain(spec, LINKS, COLOURS, pos)
    # Drawn at the datasheet's zero, where RLBench's joint 4 reads the offset.
    spec.joint("joint4").ref = -JOINT4_OFFSET
    hand = _add_hand(spec)
    for name, side in zip(FINGERS, (1.0, -1.0), strict=True):
        _add_finger(hand, name, side)
    for body in spec.bodies:
        if body.name in (*(link.name for link in LINKS), "hand", *FINGERS):
            # RLBench's servos carry the arm without sagging.
            body.gravcomp = 1.0
    for name, (kp, kv, force) in zip(JOINTS, SERVOS, strict=True):
        _add_servo(spec, name, kp, kv, force, tuple(spec.joint(name).range))
    for name in FINGERS:
        _add_servo(spec, name, *FINGER_SERVO, (FINGER_SHUT_M, FINGER_M))


def _add_hand(spec: mujoco.MjSpec) -> mujoco.MjsBody:
    """Add the hand, whose z points to the fingertips and whose fingers move along y."""
    # Half a turn about an axis in the plane: down, and 135 degrees about the flange.
    angle = radians(22.5)
    hand = spec.body("link7").add_body(
        name="hand", pos=[0, 0, -0.107], quat=[0.0, -sin(angle), cos(angle), 0.0]
    )
    hand.mass, hand.ipos, hand.inertia = 0.73, [0.01, 0, 0.03], [0.001, 0.0025, 0.0017]
    hand.explicitinertial = True
    _hand_box(hand, (0.020, 0.100, 0.020), (0, 0, 0.025), "body")
    palm = _hand_box(hand, (0.024, 0.075, 0.014), (0, 0, 0.052), "body")
    # Drawn slimmer than it is felt: RLBench's wrist camera sees the fingers and no palm.
    palm.group = 3
    _hand_box(hand, (0.015, 0.075, 0.014), (0, 0, 0.052), "body", collides=False)
    hand.add_site(name="tip", pos=[0, 0, TIP_M], size=[0.004] * 3, group=4)
    return hand


def _add_finger(hand: mujoco.MjsBody, name: str, side: float) -> None:
    finger = hand.add_body(name=name, pos=[0, 0, 0.0584])
    finger.mass, finger.inertia = 0.015, [2.375e-6, 2.375e-6, 7.5e-7]
    finger.explicitinertial = True
    joint = finger.add_joint(name=name, type=SLIDE, axis=[0, side, 0], range=[0.0, FINGER_M])
    joint.armature, joint.damping.flat[0] = 0.3, 1.0
    joint.solref_limit, joint.solimp_limit = STIFF_SOLREF, STIFF_SOLIMP
    _hand_box(finger, (0.010, 0.007, 0.012), (0, side * 0.014, 0.012), "dark", collides=False)
    _hand_box(finger, (0.009, 0.005, 0.0215), (0, side * 0.005, 0.0385), "dark", friction=2.0)


def _hand_box(
    body: mujoco.MjsBody, half: Vec3, pos: Vec3, colour: str, collides=True, friction=1.0
) -> mujoco.MjsGeom:
    bits = (ROBOT_BIT, WORLD_BIT) if collides else (0, 0)
    geom = body.add_geom(type=BOX, size=half, pos=pos, rgba=COLOURS[colour], condim=4)
    geom.contype, geom.conaffinity = bits
    geom.friction, geom.group = [friction, 0.01, 0.001], 2 if collides else 1
    geom.solref, geom.solimp, geom.solmix = STIFF_SOLREF, STIFF_SOLIMP, 5.0
    return geom


def _add_servo(
    spec: mujoco.MjSpec, name: str, kp: float, kv: float, force: float, between: tuple
) -> None:
    servo = spec.add_actuator(
        name=name,
        target=name,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        ctrlrange=between,
        forcerange=(-force, force),
    )
    servo.set_to_position(kp=kp, kv=kv)


PANDA = Robot(
    name="panda",
    add=add_panda,
    groups={"arm": JOINTS, "gripper": FINGERS},
    home=(*(radians(d) for d in (0, 10, 0, -50, 0, 70, 45)), FINGER_M, FINGER_M),
    tips={"arm": "tip"},
    grippers={"gripper": GripperRange(FINGER_SHUT_M, FINGER_M)},
    down_rpy=(0.0, pi, 0.0),
    quat_order="xyzw",
)
