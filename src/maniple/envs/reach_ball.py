"""What reaching tasks have in common: a ball in the air that the fingertip must touch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.apart import apart
from maniple.envs.closeness import near
from maniple.envs.task import Task
from maniple.sim.scene import RED, add_marker
from maniple.sim.state import State

MEANING: Mapping[str, str] = {"target_pos": "position (m); world"}


class ReachBall(Task):
    """Mixed with a place where an arm stands, which comes after it among the bases."""

    ball_m: float
    """Radius of the ball."""
    close_m: float
    """How near is near enough."""
    start_tip: tuple[float, float, float]
    """Where the tip is at the start (metres, world): no ball is there."""
    ball_low: NDArray
    ball_high: NDArray
    """Where the ball may be (metres, world)."""
    coarse_m: float
    fine_m: float
    """Distances over which the two rewards of closeness fall."""
    scales: ClassVar[dict[str, float]] = {"near": 0.6, "close": 0.4, "success": 1.0, "time": -1.0}

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the ball."""
        super().scene(spec)
        add_marker(spec, "target", self.ball_m, RED)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put the ball anywhere within reach, but not where the tip is already."""
        ball = rng.uniform(self.ball_low, self.ball_high)
        return {"target": apart(ball, self.start_tip, 3 * self.close_m)}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add the ball's position."""
        return super().observe(s) | {"target_pos": s.pos("target")}

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward closeness, coarse and fine; every step costs 1 until it is done."""
        gap = s.gap("tip", "target")
        return {
            "near": near(gap, self.coarse_m),
            "close": near(gap, self.fine_m),
            "success": gap < self.close_m,
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """Near enough."""
        return s.gap("tip", "target") < self.close_m
