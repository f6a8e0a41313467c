"""LeRobot-v0: the reference environment that SO-101 users know, same contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.quick import squared_norm
from maniple.core.seeds import Draws
from maniple.envs.task import Bounds, Task
from maniple.sim.robots.so101 import SO101_STIFF
from maniple.sim.scene import (
    GREEN,
    WHITE,
    add_box,
    add_camera,
    add_marker,
    add_table,
    new_scene,
)
from maniple.sim.state import State

TABLE_M = 0.8
TARGET = np.array([0.0, 0.0, 1.1])
GOAL = TARGET.tolist()
VARIANCE_M2 = 0.1
# exp(-d^2 / (2 * variance)) as a power of d^2.
FALL_OFF = np.exp([-1.0 / (2 * VARIANCE_M2)])


class LeRobot(Task):
    """Hold the gripper at the green point above the table."""

    robot = SO101_STIFF
    base = (-0.2, 0.0, TABLE_M)
    control = "raw"
    timestep_s = 0.002
    substeps = 1
    reads = ()
    episode_steps = None
    has_success = False
    observation_dtype = np.float64
    bounds: ClassVar[dict[str, Bounds]] = {
        "qpos": (-3.0, 3.0),
        "qvel": (-10.0, 10.0),
        "actuator_force": (-3.35, 3.35),
        "gripper_pos": (-1.5, 1.5),
    }
    meanings: ClassVar[Mapping[str, str]] = {
        "qpos": "joints and gripper (rad), then milk, bread, cereal: position (m), quaternion wxyz",
        "qvel": "joints and gripper (rad/s), then each object: m/s in the world, rad/s in the body",
        "actuator_force": "torques of the servos in the last step (N.m)",
        "gripper_pos": "tip: position (m); world",
    }
    # The reference's qpos and qvel contain the objects'.
    proprioception = ("actuator_force", "gripper_pos")
    scales: ClassVar[dict[str, float]] = {"near": 1.0}
    cameras = ("front", "frontview", "birdview", "agentview", "sideview")

    def spec(self) -> mujoco.MjSpec:
        """Use the reference's integrator and friction cone."""
        return new_scene(
            "LeRobot",
            self.timestep_s,
            mujoco.mjtIntegrator.mjINT_EULER,
            mujoco.mjtCone.mjCONE_PYRAMIDAL,
            impratio=1.0,
        )

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the table, three grocery boxes, the goal and five cameras."""
        add_table(spec, TABLE_M, (0.45, 0.45))
        add_box(spec, "milk", (0.022, 0.022, 0.050), WHITE, (0.08, 0.13, TABLE_M + 0.05), 0.20)
        brown = (0.72, 0.50, 0.28, 1.0)
        add_box(spec, "bread", (0.035, 0.025, 0.022), brown, (0.12, 0.0, TABLE_M + 0.022), 0.10)
        orange = (0.91, 0.45, 0.13, 1.0)
        add_box(spec, "cereal", (0.016, 0.036, 0.055), orange, (0.08, -0.13, TABLE_M + 0.055), 0.15)
        add_marker(spec, "goal", 0.014, GREEN, tuple(TARGET))
        # "front" is where users know it to be; the pictures of people are made with it.
        add_camera(spec, "front", (0.9, 0.0, 1.2), (-0.12, 0.0, 0.92), 30.0)
        add_camera(spec, "frontview", (1.1, 0.0, 1.35), (0.0, 0.0, 0.9), 40.0)
        add_camera(spec, "birdview", (0.0, 0.0, 2.0), (0.0, 0.0, 0.8), 45.0)
        add_camera(spec, "agentview", (0.5, 0.35, 1.35), (-0.05, 0.0, 0.9), 45.0)
        add_camera(spec, "sideview", (-0.05, 0.95, 1.15), (-0.05, 0.0, 0.92), 40.0)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Begin as the model is: the reference randomises nothing."""
        return {}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return the reference's four arrays."""
        return {
            "qpos": s.qpos,
            "qvel": s.qvel,
            "actuator_force": s.bind("actuator_force"),
            "gripper_pos": s.pos("tip"),
        }

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward nearness to the goal, a Gaussian with variance 0.1 m²."""
        return {"near": np.power(FALL_OFF, _squared_gap(s.pos("tip")))}


def _squared_gap(tips: NDArray) -> NDArray:
    """Squared distance of every tip from the goal."""
    if len(tips) == 1:
        # A single environment waits for numpy's set-up, call by call; Python rounds the same.
        ((x, y, z),), (goal_x, goal_y, goal_z) = tips.tolist(), GOAL
        x, y, z = x - goal_x, y - goal_y, z - goal_z
        return np.array([x * x + y * y + z * z])
    return squared_norm(tips - TARGET)
