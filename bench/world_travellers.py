"""Take arms and bases to evenly drawn places: states that a model is judged on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.data.episode import Episode
from maniple.registry import find
from maniple.world.config import WorldConfig
from maniple.world.make import make_player
from maniple.world.rounds import Watch, play
from maniple.world.source import LiveSource

FLOOR_LOW_M, FLOOR_HIGH_M = np.array([-0.9, -0.5]), np.array([0.0, 0.5])
"""Where a base is sent, from where it began, in any heading; ahead of it is a table."""


class TipTraveller:
    """Takes every row's tip to a place; random actions play on from there."""

    travel = 26
    """Steps until it is there."""

    def __init__(self, config: WorldConfig, rows: int, rng: np.random.Generator, then: Any) -> None:
        task: Any = find(config.environment.task)
        self._places = rng.uniform(task.ee_low_m, task.ee_high_m, (rows, 3))
        self._step_m, self._then, self._at = task.ee_step_m, then, 0

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
    """Drives every row's base to a place and turns it; random actions play on from there."""

    drive, travel = 90, 160
    """Steps until it is at the place, and until it has turned."""

    def __init__(self, rows: int, rng: np.random.Generator, then: Any) -> None:
        self._places = rng.uniform(FLOOR_LOW_M, FLOOR_HIGH_M, (rows, 2))
        self._headings = rng.uniform(-np.pi, np.pi, rows)
        self._then, self._at = then, 0
        self._is_there = np.zeros(rows, np.bool_)

    def reset(self, rows: Any) -> None:
        """Start over."""
        self._at = 0
        self._is_there[:] = False

    def act(self, obs: Any) -> NDArray:
        """Drive back to the place, which is behind every base, then turn; arms play meanwhile."""
        action = self._then.act(obs)
        if self._at < self.travel:
            x, y, yaw = obs["base_pose"].T
            way = self._places - np.stack([x, y], 1)
            far = np.hypot(*way.T)
            self._is_there |= (far < 0.03) | (self._at >= self.drive)
            off = _angle(np.arctan2(way[:, 1], way[:, 0]) + np.pi - yaw)
            back = -(np.cos(off).clip(0) ** 3) * far / 0.06
            action[:, -2] = np.clip(np.where(self._is_there, 0.0, back), -1, 1)
            # Not the shorter way round: headings are told unwrapped, and training saw few turns.
            off = np.where(self._is_there, self._headings - yaw, off)
            action[:, -1] = np.clip(5.0 * off, -1, 1)
        self._at += 1
        return action


def _angle(turn_rad: NDArray) -> NDArray:
    return (turn_rad + np.pi) % (2 * np.pi) - np.pi


class EvenlyPlaced:
    """Plays episodes of random actions that begin at places drawn evenly.

    Of a robot whose base is driven it is the base that goes there, else the tip.
    """

    def __init__(self, config: WorldConfig) -> None:
        self._config, self.steps = config, config.training.steps_per_episode
        travel = (BaseTraveller if config.environment.base else TipTraveller).travel
        longer = replace(config.training, steps_per_episode=travel + self.steps)
        self.source = LiveSource(replace(config, training=longer))

    def play(self, number: int, seed: int, watch: Watch | None = None) -> Iterator[Any]:
        """Play one round; the same number and seed give the same."""
        envs, config = self.source.envs, self._config
        rng = np.random.default_rng([config.training.seed, 5, number])
        then = make_player(config, envs, number, "random")
        player: Any = (BaseTraveller(envs.num_envs, rng, then) if config.environment.base
                       else TipTraveller(config, envs.num_envs, rng, then))  # fmt: skip
        names, steps = self.source.shapes.names, player.travel + self.steps
        played = play(envs, player, steps, seed, names, watch)
        for episode, solved in played.episodes():
            yield _since(episode, player.travel), solved[player.travel :]

    def close(self) -> None:
        """Let go of the environments."""
        self.source.close()


def _since(episode: Episode, step: int) -> Episode:
    obs = {name: array[step:] for name, array in episode.obs.items()}
    return replace(episode, obs=obs, action=episode.action[step:], reward=episode.reward[step:])
