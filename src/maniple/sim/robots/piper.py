"""AgileX Piper: a six-joint arm with a parallel gripper."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

import mujoco

from maniple.sim.robots.chain import BOX, CAPSULE, CYLINDER, Drag, Link, Shape, Vec3, add_chain
from maniple.sim.robots.robot import GripperRange, Robot

COLOURS = {
    "body": (0.92, 0.92, 0.93, 1.0),
    "joint": (0.22, 0.23, 0.25, 1.0),
    "finger": (0.12, 0.12, 0.13, 1.0),
}
HALF_PI = 1.5707963
TILT = -0.0872665
"""The hand points five degrees up at q = 0."""
APPROACH: Vec3 = (0.9962, 0.0, 0.0871)
DRAG = Drag(damping=1.0, frictionloss=0.3, armature=0.05)
FINGER_DRAG = Drag(damping=2.0, armature=0.005)


def _knuckle(x: float, z: float, radius: float, half: float) -> Shape:
    """Draw the housing of a joint that turns about y."""
    return Shape(CYLINDER, (radius, half), (x, 0, z), colour="joint", euler=(HALF_PI, 0, 0))


def _finger(name: str, joint: str, side: float) -> Link:
    """One finger; it opens towards `side` of y."""
    return Link(
        name, "gripper_base", (0.19143, 0, 0.22502), 0.025, None, (),
        shapes=(
            Shape(BOX, (0.0425, 0.006, 0.012), (0.1525, side * 0.006, 0.2216), colour="finger",
                  friction=2.0, euler=(0, TILT, 0)),
        ),
        joint=joint, axis=(0, side, 0), limits=(0.0, 0.035), slides=True, drag=FINGER_DRAG,
        part="hand",
    )  # fmt: skip


LINKS = (
    Link(
        "base_link", None, (0, 0, 0), 1.02, None, (),
        shapes=(
            Shape(BOX, (0.07, 0.06, 0.006), (0, 0, 0.006), colour="joint"),
            Shape(CYLINDER, (0.048, 0.038), (0, 0, 0.050)),
        ),
        part="trunk",
    ),
    Link(
        "link1", "base_link", (0, 0, 0.123), 0.71, None, (),
        shapes=(
            Shape(CYLINDER, (0.042, 0.012), (0, 0, 0.098), colour="joint", collides=False),
            _knuckle(0, 0.123, 0.040, 0.046),
        ),
        joint="joint1", axis=(0, 0, 1), limits=(-2.618, 2.618), drag=DRAG, part="trunk",
    ),
    Link(
        "link2", "link1", (0, 0, 0.123), 1.16, None, (),
        shapes=(
            Shape(CAPSULE, (0.030,), ends=((-0.020, 0, 0.1257), (-0.2624, 0, 0.1589))),
            _knuckle(-0.2824, 0.16162, 0.034, 0.040),
        ),
        joint="joint2", axis=(0, 1, 0), limits=(0.0, 3.14), drag=DRAG, part="trunk",
    ),
    Link(
        "link3", "link2", (-0.2824, 0, 0.16162), 0.50, None, (),
        shapes=(Shape(CAPSULE, (0.026,), ends=((-0.262, 0, 0.1652), (-0.070, 0, 0.1991))),),
        joint="joint3", axis=(0, 1, 0), limits=(-2.967, 0.0), drag=DRAG,
    ),
    Link(
        "link4", "link3", (-0.03452, 0, 0.20536), 0.38, None, (),
        shapes=(_knuckle(-0.03452, 0.20536, 0.027, 0.034),),
        joint="joint4", axis=APPROACH, limits=(-1.745, 1.745), drag=DRAG,
    ),
    Link(
        "link5", "link4", (-0.03452, 0, 0.20536), 0.383, None, (),
        shapes=(Shape(CAPSULE, (0.023,), ends=((-0.015, 0, 0.2071), (0.030, 0, 0.2109))),),
        joint="joint5", axis=(0, 1, 0), limits=(-1.22, 1.22), drag=DRAG, part="hand",
    ),
    Link(
        "link6", "link5", (0.05614, 0, 0.21319), 0.007, None, (),
        shapes=(
            Shape(CYLINDER, (0.025, 0.010), (0.0595, 0, 0.2135), colour="joint", collides=False,
                  euler=(0, HALF_PI + TILT, 0)),
        ),
        joint="joint6", axis=APPROACH, limits=(-2.0944, 2.0944), drag=DRAG, part="hand",
    ),
    Link(
        "gripper_base", "link6", (0.05614, 0, 0.21319), 0.45, None, (),
        shapes=(
            Shape(BOX, (0.020, 0.030, 0.024), (0.0880, 0, 0.2160), euler=(0, TILT, 0)),
            # The rail that the fingers slide on.
            Shape(BOX, (0.008, 0.052, 0.017), (0.1130, 0, 0.2182), colour="joint",
                  euler=(0, TILT, 0)),
        ),
        part="hand", sites={"tip": (0.1830, 0, 0.2243)},
    ),
    _finger("finger_right", "joint7", -1.0),
    _finger("finger_left", "joint8", 1.0),
)  # fmt: skip

ARM: tuple[str, ...] = ("joint1", "joint2", "joint3", "joint4", "joint5", "joint6")
GRIPPER: str = "joint7"
SERVOS = {
    # kp, kv, force: held the arm and looked right.
    **dict.fromkeys(ARM[:3], (150.0, 12.0, 30.0)),
    "joint4": (60.0, 5.0, 12.0),
    "joint5": (40.0, 3.0, 12.0),
    "joint6": (30.0, 2.0, 8.0),
    GRIPPER: (600.0, 20.0, 10.0),
}
START = (0.0, 1.1, -0.95, 0.0, 0.976, 0.0, 0.035)
STEPS: dict[str, float] = dict(
    zip((*ARM, GRIPPER), (0.05, 0.03, 0.03, 0.03, 0.03, 0.05, 0.005), strict=True)
)
"""As the users of PiperMobileRobot-v0 know them (rad, m)."""
GRIPPER_RANGE = GripperRange(closed=0.0, open=0.035)


def add_piper(
    spec: mujoco.MjSpec,
    pos: Vec3,
    prefix: str = "",
    parent: mujoco.MjsBody | None = None,
    is_driven: bool = True,
) -> None:
    """Add an arm with seven servos; gravity is compensated, as its own controller does.

    An arm that is not driven has no joints at all, and stands as at the start.
    """
    posed = dict(zip((*ARM, GRIPPER, "joint8"), (*START, START[-1]), strict=True))
    frozen: Mapping[str, float] = {} if is_driven else posed
    add_chain(spec, LINKS, COLOURS, pos, prefix=prefix, parent=parent, frozen=frozen)
    if not is_driven:
        return
    for link in LINKS:
        spec.body(prefix + link.name).gravcomp = 1.0
    pair = spec.add_equality(name=f"{prefix}fingers", name1=f"{prefix}joint8")
    pair.type, pair.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
    pair.name2 = prefix + GRIPPER
    pair.data[:2] = [0.0, 1.0]
    pair.solref = [0.005, 1.0]
    limits = {link.joint: link.limits for link in LINKS}
    for joint, (kp, kv, force) in SERVOS.items():
        servo = spec.add_actuator(
            name=prefix + joint,
            target=prefix + joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            ctrlrange=limits[joint],
            forcerange=(-force, force),
        )
        servo.set_to_position(kp=kp, kv=kv)


def piper_groups(prefixes: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the joints of arms and grippers, by part: 'arm', 'gripper', or with a prefix each."""
    parts = [
        (
            (f"{prefix}arm", tuple(prefix + name for name in ARM)),
            (f"{prefix}gripper", (prefix + GRIPPER,)),
        )
        for prefix in prefixes
    ]
    return dict(chain.from_iterable(parts))


PIPER = Robot(
    name="piper",
    add=add_piper,
    groups=piper_groups(("",)),
    home=START,
    tips={"arm": "tip"},
    grippers={"gripper": GRIPPER_RANGE},
    # Pointing 65 degrees down: straight down it would not reach far.
    down_rpy=(0.0, 1.22, 0.0),
    steps=STEPS,
)
