"""Reach: touch a point in space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from maniple.envs.reach_ball import MEANING, ReachBall
from maniple.envs.so101.desk import (
    ARM_BOUNDS,
    ARM_MEANINGS,
    HIGH_XY,
    LOW_XY,
    POSE_BOUNDS,
    DeskTask,
)
from maniple.envs.task import Bounds


class Reach(ReachBall, DeskTask):
    """Touch the red ball with the fingertip."""

    episode_steps = 60
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {"target_pos": POSE_BOUNDS}
    meanings: ClassVar[Mapping[str, str]] = {**ARM_MEANINGS, **MEANING}
    ball_m, close_m = 0.012, 0.02
    start_tip = (0.2207, 0.0, 0.1146)
    ball_low, ball_high = np.append(LOW_XY, 0.02), np.append(HIGH_XY, 0.14)
    coarse_m, fine_m = 0.15, 0.03
