"""What a scene, a controller and a task need to know of a robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal, NamedTuple

import mujoco

from maniple.core.errors import BadConfig
from maniple.sim.robots.chain import Vec3


class GripperRange(NamedTuple):
    """Servo targets of a gripper's joints (rad or m)."""

    closed: float
    open: float


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot as data: how to add it to a scene, and what its parts are called.

    It may have no gripper, several arms, or a base that moves: each is a group of joints. Every
    joint of a group has an actuator of the same name.
    """

    name: str
    add: Callable[[mujoco.MjSpec, Vec3], None]
    """Add bodies and actuators to a scene, the base at a position (metres, world)."""
    groups: Mapping[str, tuple[str, ...]]
    """Joints that controllers drive, by part: 'arm', 'left_arm', 'gripper', 'base', 'legs'."""
    home: tuple[float, ...]
    """Resting positions of the joints, group after group (rad, m)."""
    tips: Mapping[str, str] = field(default_factory=dict)
    """The site between the fingertips of each group that is an arm."""
    grippers: Mapping[str, GripperRange] = field(default_factory=dict)
    """Closed and open position of each group that is a gripper; its joints move together."""
    down_rpy: Vec3 = (0.0, 0.0, 0.0)
    """Orientation of the tip site in the world when the gripper points down (rad)."""
    base: Literal["fixed", "planar", "free"] = "fixed"
    """Whether the base stands still, is driven in the plane, or moves on a free joint."""
    steps: Mapping[str, float] = field(default_factory=dict)
    """How far an action of size 1 moves each joint with control 'increment' (rad, m)."""
    base_speed: tuple[float, float] = (0.0, 0.0)
    """Speed ahead and of turning that an action of size 1 asks of a driven base (m/s, rad/s)."""
    quat_order: Literal["wxyz", "xyzw"] = "wxyz"
    """Order of quaternions in observations and actions of this robot's tasks."""

    def __post_init__(self) -> None:
        assert len(self.home) == len(self.all_joints), f"{self.name}: one home position per joint"
        assert self.tips.keys() | self.grippers.keys() <= self.groups.keys(), self.name

    @property
    def all_joints(self) -> tuple[str, ...]:
        """Joints of all groups, in the order of `home`."""
        return tuple(chain.from_iterable(self.groups.values()))

    @property
    def plain_joints(self) -> tuple[str, ...]:
        """Joints of all groups but the grippers: arms, base, legs."""
        names = [group for group in self.groups if group not in self.grippers]
        return tuple(chain.from_iterable(self.groups[name] for name in names))

    @property
    def arm(self) -> str:
        """The group that is the robot's only arm, for controllers of one hand."""
        if len(self.tips) != 1 or self.base != "fixed":
            arms = ", ".join(self.tips) or "no arm"
            raise BadConfig(
                f"{self.name} has {arms} on a {self.base} base, and this control moves one arm on "
                "a fixed base. Use control='joint', 'delta_joint', 'joint_position' or "
                "'joint_velocity'."
            )
        return next(iter(self.tips))

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints of the only arm, without the gripper."""
        return self.groups[self.arm]

    @property
    def posture(self) -> tuple[float, ...]:
        """Resting positions of the only arm's joints (rad)."""
        at = dict(zip(self.all_joints, self.home, strict=True))
        return tuple(at[name] for name in self.joints)

    @property
    def tip(self) -> str:
        """Site between the fingertips of the only arm."""
        return self.tips[self.arm]
