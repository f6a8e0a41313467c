"""Reach: touch a ball in the air."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.piper.places import ARM_BOUNDS, ARM_MEANINGS, POSE_BOUNDS, PiperTask, near
from maniple.envs.task import Bounds
from maniple.sim.scene import RED, add_marker
from maniple.sim.state import State

CLOSE_M = 0.03
LOW, HIGH = np.array([0.24, -0.18, 0.05]), np.array([0.44, 0.18, 0.28])
START_TIP = np.array([0.2686, 0.0, 0.2102])
"""Where the tip is at the start."""


class Reach(PiperTask):
    """Touch the red ball with the fingertip."""

    episode_steps = 60
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {"target_pos": POSE_BOUNDS}
    meanings: ClassVar[Mapping[str, str]] = {**ARM_MEANINGS, "target_pos": "position (m); world"}
    scales: ClassVar[dict[str, float]] = {"near": 0.6, "close": 0.4, "success": 1.0, "time": -1.0}

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the ball."""
        super().scene(spec)
        add_marker(spec, "target", 0.018, RED)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put the ball anywhere within reach, but not where the tip is already."""
        target = rng.uniform(LOW, HIGH)
        way = target - START_TIP
        far = np.maximum(np.sqrt((way**2).sum(1, keepdims=True)), 1e-6)
        return {"target": START_TIP + way * np.maximum(far, 2 * CLOSE_M) / far}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add the ball's position."""
        return super().observe(s) | {"target_pos": s.pos("target")}

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward closeness, coarse and fine; every step costs 1 until it is done."""
        gap = s.gap("tip", "target")
        return {
            "near": near(gap, 0.20),
            "close": near(gap, 0.04),
            "success": gap < CLOSE_M,
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """Within three centimetres."""
        return s.gap("tip", "target") < CLOSE_M
