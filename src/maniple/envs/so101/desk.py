"""The desk that the SO-101 tasks share: scene, cameras, the arm's own observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.task import Bounds, Task
from maniple.sim.robots.so101 import SO101
from maniple.sim.rotation import yaw_quat
from maniple.sim.scene import RED, Rgba, add_box, add_camera, add_desk
from maniple.sim.state import State

CUBE_HALF_M = 0.0115
CUBE_KG = 0.02
# Where objects may lie: all of it can be reached with the gripper pointing down.
LOW_XY, HIGH_XY = np.array([0.17, -0.09]), np.array([0.26, 0.09])

ARM_BOUNDS: dict[str, Bounds] = {
    "joint_pos": (-3.2, 3.2),
    "joint_vel": (-20.0, 20.0),
    "tip_pos": (-1.0, 1.0),
}
POSE_BOUNDS: Bounds = (-2.0, 2.0)
ARM_MEANINGS: Mapping[str, str] = {
    "joint_pos": "positions of the five joints and the gripper (rad; gripper -0.17 shut, 1 open)",
    "joint_vel": "velocities of the five joints and the gripper (rad/s)",
    "tip_pos": "tip: position (m); world",
}
POSE_MEANING = f"position (m), quaternion {SO101.quat_order}; world"


class DeskTask(Task):
    """Do something on a desk."""

    ee_low_m = (0.10, -0.20, 0.008)
    ee_high_m = (0.36, 0.20, 0.24)
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS
    meanings: ClassVar[Mapping[str, str]] = ARM_MEANINGS
    proprioception = tuple(ARM_BOUNDS)

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the desk and three cameras."""
        add_desk(spec)
        add_camera(spec, "front", (0.60, -0.26, 0.36), (0.16, 0.0, 0.09), 42.0)
        # As mounted on the real arm: beside the gripper, towards the fingertips.
        eye, tip = (0.012, 0.066, 0.012), (0.100, 0.0, 0.010)
        add_camera(spec, "wrist", eye, tip, 62.0, body="gripper", up=(1.0, 0.0, 0.0))
        add_camera(spec, "overhead", (0.20, 0.0, 0.72), (0.20, 0.0, 0.0), 45.0)

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return the arm's joints and its fingertip; tasks add what they are about."""
        return {
            "joint_pos": s.qpos[:, :6],
            "joint_vel": s.qvel[:, :6],
            "tip_pos": s.pos(self.robot.tip),
        }


def add_cube(spec: mujoco.MjSpec, name: str = "cube", rgba: Rgba = RED) -> None:
    """Add a cube that fits between the jaws."""
    half = (CUBE_HALF_M, CUBE_HALF_M, CUBE_HALF_M)
    add_box(spec, name, half, rgba, (0.2, 0.0, CUBE_HALF_M), CUBE_KG)


def lying(rng: Draws, xy: NDArray, most_yaw_rad: float = 0.25) -> NDArray:
    """Poses of cubes that lie on the desk, slightly turned: (rows, 7)."""
    height = np.full((len(rng), 1), CUBE_HALF_M)
    yaw = rng.uniform(-most_yaw_rad, most_yaw_rad)
    return np.concatenate([xy, height, yaw_quat(yaw)], axis=1)


def pose(s: State, body: str) -> NDArray:
    """Position and orientation of a body, (rows, 7)."""
    return np.concatenate([s.pos(body), s.quat(body)], axis=1)
