"""PushCube: slide a cube to a marked place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.closeness import near
from maniple.envs.so101.desk import (
    ARM_BOUNDS,
    ARM_MEANINGS,
    POSE_BOUNDS,
    POSE_MEANING,
    DeskTask,
    add_cube,
    lying,
    pose,
)
from maniple.envs.task import Bounds
from maniple.sim.scene import GREEN, add_disc
from maniple.sim.state import State, norm

CLOSE_M = 0.025
CUBE_LOW, CUBE_HIGH = np.array([0.17, -0.07]), np.array([0.20, 0.07])
# From the cube to the disc: away from the arm, slightly to either side.
WAY_LOW, WAY_HIGH = np.array([0.07, -0.03]), np.array([0.10, 0.03])


class PushCube(DeskTask):
    """Push the red cube onto the green disc."""

    episode_steps = 100
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {
        "cube_pose": POSE_BOUNDS,
        "goal_pos": POSE_BOUNDS,
    }
    meanings: ClassVar[Mapping[str, str]] = {
        **ARM_MEANINGS,
        "cube_pose": POSE_MEANING,
        "goal_pos": "position (m); world",
    }
    scales: ClassVar[dict[str, float]] = {"touch": 0.3, "near": 0.7, "success": 1.0, "time": -1.0}

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the cube and the disc."""
        super().scene(spec)
        add_cube(spec)
        add_disc(spec, "goal", 0.03, GREEN, (0.27, 0.0, 0.001))

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put the cube close to the arm and the disc further away."""
        cube = rng.uniform(CUBE_LOW, CUBE_HIGH)
        goal = cube + rng.uniform(WAY_LOW, WAY_HIGH)
        return {
            "cube": lying(rng, cube),
            "goal": np.column_stack([goal, np.full(len(rng), 0.001)]),
        }

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add the cube's pose and the disc's place."""
        return super().observe(s) | {"cube_pose": pose(s, "cube"), "goal_pos": s.pos("goal")}

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward the fingertip at the cube, and the cube at the disc."""
        return {
            "touch": near(s.gap("tip", "cube"), 0.10),
            "near": near(_to_goal(s), 0.08),
            "success": self.success(s),
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """The cube's middle within two and a half centimetres of the disc's."""
        return _to_goal(s) < CLOSE_M


def _to_goal(s: State) -> NDArray:
    return norm(s.pos("cube")[:, :2] - s.pos("goal")[:, :2])
