"""Scripted experts: follow waypoints that are computed from observations, in all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import UnknownName

Obs = dict[str, NDArray]


class Seen(dict):
    """Observations that say what to do where one is missing that an expert looks at."""

    def __missing__(self, name: str) -> NDArray:
        raise UnknownName(
            f"The expert looks at {name!r}, which is not among the observations "
            f"({', '.join(self)}). Make the environments with observations='all'."
        )


class Waypoint(NamedTuple):
    """Where the tip should be, how wide the gripper is, and when that is done."""

    goal: Callable[[Obs], NDArray]
    """Tip position, (rows, 3), metres."""
    grip: float
    """-1 shut, 1 open."""
    tolerance_m: float = 0.008
    hold_steps: int = 1
    """Steps to stay within the tolerance before going on."""


class WaypointExpert:
    """Moves every row through the same waypoints, each at its own pace.

    It sees only observations, so that it drives any engine. The last waypoint is kept.
    """

    def __init__(
        self,
        waypoints: Sequence[Waypoint],
        num_envs: int,
        step_m: float,
        gain: float = 0.35,
    ) -> None:
        self._waypoints = waypoints
        self._scale = gain / step_m
        self._at = np.zeros(num_envs, np.int64)
        self._held = np.zeros(num_envs, np.int64)
        self._grips = np.array([w.grip for w in waypoints])
        self._tolerances = np.array([w.tolerance_m for w in waypoints])
        self._holds = np.array([w.hold_steps for w in waypoints])

    def act(self, obs: Obs) -> NDArray[np.float32]:
        """Return the next action of every row."""
        obs = Seen(obs)
        tip = obs["tip_pos"]
        goals = np.stack([w.goal(obs) for w in self._waypoints])
        goal = goals[self._at, np.arange(len(tip))]
        offset = goal - tip
        actions = np.empty((len(tip), 4), np.float32)
        actions[:, :3] = np.clip(offset * self._scale, -1.0, 1.0)
        actions[:, 3] = self._grips[self._at]
        is_there = np.sqrt((offset**2).sum(1)) < self._tolerances[self._at]
        self._held = np.where(is_there, self._held + 1, 0)
        goes_on = (self._held >= self._holds[self._at]) & (self._at < len(self._waypoints) - 1)
        self._at += goes_on
        self._held[goes_on] = 0
        return actions

    def reset(self, rows: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Start over in rows that begin an episode."""
        self._at[rows] = 0
        self._held[rows] = 0
