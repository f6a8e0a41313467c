"""What a scene, a controller and a task need to know of a robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mujoco

from maniple.sim.robots.chain import Vec3


@dataclass(frozen=True)
class Robot:
    """A robot as data: how to add it to a scene, and what its parts are called."""

    name: str
    add: Callable[[mujoco.MjSpec, Vec3], None]
    """Add bodies and actuators to a scene, the base at a position (metres, world)."""
    joints: tuple[str, ...]
    """Arm joints in the order of the actuators, without the gripper."""
    gripper: str
    """Joint of the gripper; its actuator is the last one."""
    gripper_closed: float
    gripper_open: float
    tip: str
    """Site between the fingertips."""
    home: tuple[float, ...]
    """Resting joint positions, gripper last (rad, m)."""
    down_rpy: Vec3 = (0.0, 0.0, 0.0)
    """Orientation of the tip site in the world when the gripper points down (rad)."""
    twin: str | None = None
    """A second finger's joint, which does what `gripper` does."""
