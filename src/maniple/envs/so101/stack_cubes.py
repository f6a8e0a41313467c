"""StackCubes: put one cube on top of another."""

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
    CUBE_HALF_M,
    POSE_BOUNDS,
    POSE_MEANING,
    DeskTask,
    add_cube,
    lying,
    pose,
)
from maniple.envs.task import Bounds
from maniple.sim.scene import BLUE
from maniple.sim.state import State, norm

SIDE_LOW, SIDE_HIGH = np.array([0.18, 0.035]), np.array([0.25, 0.09])


class StackCubes(DeskTask):
    """Put the red cube on top of the blue cube."""

    episode_steps = 150
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {
        "cube_pose": POSE_BOUNDS,
        "below_pose": POSE_BOUNDS,
    }
    meanings: ClassVar[Mapping[str, str]] = {
        **ARM_MEANINGS,
        "cube_pose": POSE_MEANING,
        "below_pose": POSE_MEANING,
    }
    scales: ClassVar[dict[str, float]] = {
        "touch": 0.2, "lift": 0.3, "place": 0.5, "success": 1.0, "time": -1.0,
    }  # fmt: skip

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add both cubes."""
        super().scene(spec)
        add_cube(spec)
        add_cube(spec, "below", BLUE)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put one cube on either side of the arm."""
        side = np.where(rng.random() < 0.5, -1.0, 1.0)[:, None] * [0.0, 1.0] + [1.0, 0.0]
        mirrored = side * [1.0, -1.0]
        return {
            "cube": lying(rng, rng.uniform(SIDE_LOW, SIDE_HIGH) * side),
            "below": lying(rng, rng.uniform(SIDE_LOW, SIDE_HIGH) * mirrored),
        }

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add both cubes' poses."""
        return super().observe(s) | {
            "cube_pose": pose(s, "cube"),
            "below_pose": pose(s, "below"),
        }

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward grasping, lifting above the other cube, and resting on it."""
        touch = near(s.gap("tip", "cube"), 0.08)
        height = np.clip((s.pos("cube")[:, 2] - CUBE_HALF_M) / (4 * CUBE_HALF_M), 0.0, 1.0)
        above = s.pos("below") + [0.0, 0.0, 2 * CUBE_HALF_M]
        return {
            "touch": touch,
            "lift": height,
            "place": height * near(norm(s.pos("cube") - above), 0.06),
            "success": self.success(s),
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """Resting on the other cube, at rest, and let go of."""
        offset = s.pos("cube") - s.pos("below")
        is_on_top = (norm(offset[:, :2]) < CUBE_HALF_M) & (
            np.abs(offset[:, 2] - 2 * CUBE_HALF_M) < 0.004
        )
        is_still = norm(s.vel("cube")) < 0.03
        return is_on_top & is_still & (s.gap("tip", "cube") > 0.03)
