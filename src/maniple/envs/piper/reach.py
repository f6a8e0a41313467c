"""Reach: touch a ball in the air."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from maniple.envs.piper.places import ARM_BOUNDS, ARM_MEANINGS, POSE_BOUNDS, PiperTask
from maniple.envs.reach_ball import MEANING, ReachBall
from maniple.envs.task import Bounds


class Reach(ReachBall, PiperTask):
    """Touch the red ball with the fingertip."""

    episode_steps = 60
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {"target_pos": POSE_BOUNDS}
    meanings: ClassVar[Mapping[str, str]] = {**ARM_MEANINGS, **MEANING}
    ball_m, close_m = 0.018, 0.03
    start_tip = (0.2686, 0.0, 0.2102)
    ball_low, ball_high = np.array([0.24, -0.18, 0.05]), np.array([0.44, 0.18, 0.28])
    coarse_m, fine_m = 0.20, 0.04
