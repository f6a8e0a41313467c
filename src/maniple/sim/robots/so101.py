"""SO-101: a five-joint desktop arm with a one-jaw gripper and STS3215 servos."""

from __future__ import annotations

from dataclasses import replace

import mujoco

from maniple.sim.robots.chain import BOX, CAPSULE, CYLINDER, Drag, Link, Shape, Vec3, add_chain
from maniple.sim.robots.robot import GripperRange, Robot

COLOURS = {
    "body": (0.96, 0.72, 0.16, 1.0),
    "servo": (0.13, 0.13, 0.15, 1.0),
    "jaw": (0.93, 0.93, 0.92, 1.0),
}
HALF_PI = 1.5707963

# Measured servo: stall 2.94 N.m at 12 V; gains of a servo at its default stiffness.
SERVO_KP, SERVO_KV, SERVO_FORCE = 998.22, 2.731, 2.94
DRAG = Drag(damping=0.60, frictionloss=0.052, armature=0.028)


def _servo(x: float, z: float, half_width: float = 0.026) -> Shape:
    """Draw a servo whose shaft runs along y."""
    return Shape(CYLINDER, (0.0175, half_width), (x, 0, z), colour="servo", euler=(HALF_PI, 0, 0))


LINKS = (
    Link(
        "base", None, (0, 0, 0), 0.147, (0.0137, 0, 0.0335), (115e-6, 136e-6, 130e-6),
        shapes=(
            Shape(BOX, (0.055, 0.048, 0.009), (0.010, 0, 0.009)),
            Shape(BOX, (0.036, 0.030, 0.022), (0.018, 0, 0.038)),
            Shape(BOX, (0.018, 0.024, 0.018), (0.0388, 0, 0.043), colour="servo", collides=False),
        ),
        part="trunk",
    ),
    Link(
        "shoulder", "base", (0.03884, 0, 0.0624), 0.100, (0.0696, 0, 0.0877),
        (84e-6, 81e-6, 24e-6),
        shapes=(
            Shape(CYLINDER, (0.026, 0.006), (0.03884, 0, 0.0680), collides=False),
            Shape(BOX, (0.024, 0.023, 0.022), (0.054, 0, 0.094)),
            _servo(0.06923, 0.1166, 0.031),
        ),
        joint="shoulder_pan", axis=(0, 0, -1), limits=(-1.91986, 1.91986), part="trunk", drag=DRAG,
    ),
    Link(
        "upper_arm", "shoulder", (0.06923, 0, 0.1166), 0.103, (0.0776, 0, 0.2065),
        (147e-6, 142e-6, 41e-6),
        shapes=(
            Shape(CAPSULE, (0.0145,), ends=((0.0715, 0, 0.128), (0.0950, 0, 0.218))),
            Shape(BOX, (0.008, 0.028, 0.030), (0.0700, 0, 0.178), colour="body",
                  collides=False, euler=(0, 0.244, 0)),
            _servo(0.09723, 0.22917),
        ),
        joint="shoulder_lift", axis=(0, 1, 0), limits=(-1.74533, 1.74533), part="trunk", drag=DRAG,
    ),
    Link(
        "lower_arm", "upper_arm", (0.09723, 0, 0.22917), 0.104, (0.1953, 0, 0.2324),
        (29e-6, 145e-6, 160e-6),
        shapes=(
            Shape(CAPSULE, (0.0130,), ends=((0.110, 0, 0.2297), (0.220, 0, 0.2339))),
            Shape(BOX, (0.034, 0.024, 0.007), (0.168, 0, 0.2440), collides=False,
                  euler=(0, -0.0385, 0)),
            _servo(0.23213, 0.23437, 0.025),
        ),
        joint="elbow_flex", axis=(0, 1, 0), limits=(-1.69, 1.69), drag=DRAG,
    ),
    Link(
        "wrist", "lower_arm", (0.23213, 0, 0.23437), 0.079, (0.2708, 0.0098, 0.2345),
        (25e-6, 21e-6, 37e-6),
        shapes=(
            Shape(BOX, (0.022, 0.016, 0.017), (0.262, 0, 0.2344), colour="servo"),
            Shape(BOX, (0.016, 0.020, 0.011), (0.252, 0, 0.2344), collides=False),
        ),
        joint="wrist_flex", axis=(0, 1, 0), limits=(-1.65806, 1.65806), part="hand", drag=DRAG,
    ),
    Link(
        "gripper", "wrist", (0.29323, 0, 0.23437), 0.087, (0.3184, 0, 0.2346),
        (35e-6, 43e-6, 28e-6),
        shapes=(
            Shape(CYLINDER, (0.0185, 0.006), (0.2885, 0, 0.2344), colour="body", collides=False,
                  euler=(0, HALF_PI, 0)),
            Shape(BOX, (0.0165, 0.025, 0.0205), (0.310, 0, 0.2365), colour="servo"),
            Shape(BOX, (0.0375, 0.0115, 0.0035), (0.3585, 0, 0.2255), colour="jaw", friction=1.5),
        ),
        joint="wrist_roll", axis=(-1, 0, 0), limits=(-2.74385, 2.84121), part="hand", drag=DRAG,
        sites={"tip": (0.39136, 0, 0.2430)},
    ),
    Link(
        "moving_jaw", "gripper", (0.31663, 0, 0.25546), 0.012, (0.3467, -0.0016, 0.2530),
        (1.9e-6, 5.3e-6, 6.6e-6),
        shapes=(
            Shape(CYLINDER, (0.009, 0.014), (0.31663, 0, 0.25546), collides=False,
                  euler=(HALF_PI, 0, 0)),
            Shape(BOX, (0.0365, 0.0105, 0.0035), (0.3585, 0, 0.2465), colour="jaw", friction=1.5),
        ),
        joint="gripper", axis=(0, -1, 0), limits=(-0.17453, 1.74533), part="hand", drag=DRAG,
    ),
)  # fmt: skip

JOINTS = tuple(link.joint for link in LINKS if link.joint)


def add_so101(
    spec: mujoco.MjSpec, pos: Vec3, force: float = SERVO_FORCE, gripper_force: float = SERVO_FORCE
) -> None:
    """Add the arm with its six position servos; forces in N.m."""
    add_chain(spec, LINKS, COLOURS, pos)
    for link in LINKS:
        if link.joint is None:
            continue
        limit = gripper_force if link.joint == "gripper" else force
        servo = spec.add_actuator(
            name=link.joint,
            target=link.joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            ctrlrange=link.limits,
            forcerange=(-limit, limit),
        )
        servo.set_to_position(kp=SERVO_KP, kv=SERVO_KV)


SO101 = Robot(
    name="so101",
    # A gentler gripper than the servo's stall torque: a grasped cube is held, not shot away.
    add=lambda spec, pos: add_so101(spec, pos, gripper_force=0.9),
    groups={"arm": JOINTS[:-1], "gripper": JOINTS[-1:]},
    home=(0.0, -0.35, 0.10, 1.658, 0.0, 0.4),
    tips={"arm": "tip"},
    grippers={"gripper": GripperRange(closed=-0.17453, open=1.0)},
    down_rpy=(0.0, HALF_PI, 0.0),
)

SO101_STIFF = replace(
    SO101,
    # The reference environment allows 3.35 N.m on every servo.
    add=lambda spec, pos: add_so101(spec, pos, force=3.35, gripper_force=3.35),
    home=(0.0,) * 6,
)
