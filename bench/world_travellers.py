"""Take arms and bases to places drawn evenly, for judging a model where noise seldom leads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.world.config import WorldConfig
from maniple.world.source import LiveSource

TIP_STEPS, BASE_STEPS = 26, 50
"""Steps in which an arm, or a base, gets to its place."""
FLOOR_LOW_M, FLOOR_HIGH_M = np.array([-0.9, -0.5]), np.array([0.1, 0.5])
"""Where a base is sent, from where it began: what it reaches in its time; ahead is a table."""


class TipTraveller:
    """Takes every row's tip to a place; random actions play on from there."""

    travel = TIP_STEPS

    def __init__(self, places: NDArray, step_m: float, then: Any) -> None:
        self._places, self._step_m, self._then = places, step_m, then
        self._at = 0

    def reset(self, rows: Any) -> None:
        """Start over."""
        self._at = 0

    def act(self, obs: Any) -> NDArray:
        """Go straight, with the gripper as random actions leave it."""
        action = self._then.act(obs)
        if self._at < self.travel:
            way = (self._places - obs["tip_pos"]) / self._step_m
            action[:, :3] = np.clip(way, -1, 1)
        self._at += 1
        return action


class BaseTraveller:
    """Drives every row's base to a place on the floor; random actions play on from there."""

    travel = BASE_STEPS

    def __init__(self, places: NDArray, then: Any) -> None:
        self._places, self._then = places, then
        self._at = 0

    def reset(self, rows: Any) -> None:
        """Start over."""
        self._at = 0

    def act(self, obs: Any) -> NDArray:
        """Turn towards the place, or away from it where that is less, and drive; arms play."""
        action = self._then.act(obs)
        if self._at < self.travel:
            x, y, yaw = obs["base_pose"].T
            way = self._places - np.stack([x, y], 1)
            far = np.hypot(*way.T)
            off = np.arctan2(way[:, 1], way[:, 0]) - yaw
            off = (off + np.pi) % (2 * np.pi) - np.pi
            is_behind = np.abs(off) > np.pi / 2
            off = np.where(is_behind, off - np.sign(off) * np.pi, off)
            ahead = np.cos(off) ** 3 * np.where(is_behind, -1.0, 1.0) * far / 0.06
            action[:, -2] = np.clip(np.where(far > 0.03, ahead, 0.0), -1, 1)
            action[:, -1] = np.clip(np.where(far > 0.03, 5.0 * off, 0.0), -1, 1)
        self._at += 1
        return action


def traveller(config: WorldConfig, source: LiveSource, then: Any, number: int) -> Any:
    """Send every row to a place of its own: the base where one is driven, else the tip."""
    from maniple.registry import find

    rng = np.random.default_rng([config.training.seed, 5, number])
    rows = source.envs.num_envs
    if config.environment.base:
        return BaseTraveller(rng.uniform(FLOOR_LOW_M, FLOOR_HIGH_M, (rows, 2)), then)
    task: Any = find(config.environment.task)
    places = rng.uniform(task.ee_low_m, task.ee_high_m, (rows, 3))
    return TipTraveller(places, task.ee_step_m, then)
