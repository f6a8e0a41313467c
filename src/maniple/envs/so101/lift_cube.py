"""LiftCube: grasp a cube and raise it."""

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
    HIGH_XY,
    LOW_XY,
    POSE_BOUNDS,
    POSE_MEANING,
    DeskTask,
    add_cube,
    lying,
    pose,
)
from maniple.envs.task import Bounds
from maniple.sim.state import State

LIFT_M = 0.10


class LiftCube(DeskTask):
    """Lift the red cube ten centimetres."""

    episode_steps = 100
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {"cube_pose": POSE_BOUNDS}
    meanings: ClassVar[Mapping[str, str]] = {**ARM_MEANINGS, "cube_pose": POSE_MEANING}
    scales: ClassVar[dict[str, float]] = {"touch": 0.3, "lift": 0.7, "success": 1.0, "time": -1.0}

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the cube."""
        super().scene(spec)
        add_cube(spec)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put the cube anywhere within reach."""
        return {"cube": lying(rng, rng.uniform(LOW_XY, HIGH_XY))}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add the cube's pose."""
        return super().observe(s) | {"cube_pose": pose(s, "cube")}

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward the fingertip at the cube, and the cube's height while it is held."""
        touch = near(s.gap("tip", "cube"), 0.08)
        return {
            "touch": touch,
            "lift": touch * np.clip(_height(s) / LIFT_M, 0.0, 1.0),
            "success": self.success(s),
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """High enough, and in the gripper: a cube flung into the air does not count."""
        return (_height(s) > LIFT_M) & (s.gap("tip", "cube") < 0.03)


def _height(s: State) -> NDArray:
    return s.pos("cube")[:, 2] - CUBE_HALF_M
