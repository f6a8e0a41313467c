"""Reach: touch a point in space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.apart import apart
from maniple.envs.so101.desk import (
    ARM_BOUNDS,
    ARM_MEANINGS,
    HIGH_XY,
    LOW_XY,
    POSE_BOUNDS,
    DeskTask,
    near,
)
from maniple.envs.task import Bounds
from maniple.sim.scene import RED, add_marker
from maniple.sim.state import State

CLOSE_M = 0.02
START_TIP = (0.2207, 0.0, 0.1146)
"""Where the tip is at the start (metres)."""
LOW, HIGH = np.append(LOW_XY, 0.02), np.append(HIGH_XY, 0.14)


class Reach(DeskTask):
    """Touch the red ball with the fingertip."""

    episode_steps = 60
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {"target_pos": POSE_BOUNDS}
    meanings: ClassVar[Mapping[str, str]] = {**ARM_MEANINGS, "target_pos": "position (m); world"}
    scales: ClassVar[dict[str, float]] = {"near": 0.6, "close": 0.4, "success": 1.0, "time": -1.0}

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the ball."""
        super().scene(spec)
        add_marker(spec, "target", 0.012, RED)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put the ball anywhere within reach, but not where the tip is already."""
        return {"target": apart(rng.uniform(LOW, HIGH), START_TIP, 3 * CLOSE_M)}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add the ball's position."""
        return super().observe(s) | {"target_pos": s.pos("target")}

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward closeness, coarse and fine; every step costs 1 until it is done."""
        gap = s.gap("tip", "target")
        return {
            "near": near(gap, 0.15),
            "close": near(gap, 0.03),
            "success": gap < CLOSE_M,
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """Within two centimetres."""
        return s.gap("tip", "target") < CLOSE_M
