"""Measure a policy honestly: separate seeds, one episode each, with a confidence interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.data.stack import FrameStack

Act = Callable[[Mapping[str, NDArray]], NDArray]
FIRST_SEED = 1_000_000_000
"""Episodes of evaluation begin here; training runs count from their own small seed."""


@dataclass(frozen=True)
class Evaluation:
    """How a policy did."""

    episodes: int
    successes: int | None
    """None where the task does not say what success is."""
    returns: list[float] = field(repr=False)
    lengths: list[int] = field(repr=False)
    seeds: list[int] = field(repr=False)

    @property
    def success_rate(self) -> float:
        """Part of the episodes that were solved; NaN where success has no meaning."""
        return float("nan") if self.successes is None else self.successes / self.episodes

    @property
    def return_mean(self) -> float:
        """Mean sum of rewards."""
        return float(np.mean(self.returns))

    @property
    def score(self) -> float:
        """What the best checkpoint is chosen by."""
        return self.return_mean if self.successes is None else self.success_rate

    @property
    def success_ci95(self) -> tuple[float, float]:
        """Wilson's interval: right also for small numbers, and at 0 % and 100 %."""
        if self.successes is None:
            return float("nan"), float("nan")
        return wilson(self.successes, self.episodes)


def evaluate(
    envs: Any,
    act: Act,
    episodes: int,
    first_seed: int = FIRST_SEED,
    stack: int = 1,
    watch: Callable[[Mapping[str, NDArray], NDArray[np.bool_]], None] | None = None,
) -> Evaluation:
    """Play `episodes` episodes, number k from seed `first_seed + k`, on any number of rows.

    Args:
        envs: A vector environment with next-step autoreset.
        act: The policy without exploration.
        watch: Called after every step with the observations and the rows that still play.
    """
    returns, lengths, wins = np.zeros(episodes), np.zeros(episodes, int), np.zeros(episodes, bool)
    has_success = False
    for start in range(0, episodes, envs.num_envs):
        # Rows beyond the last episode play along, uncounted.
        seeds = [first_seed + start + k for k in range(envs.num_envs)]
        obs, _ = envs.reset(seed=seeds)
        frames = FrameStack(envs.layout, stack)
        seen = frames.begin(envs.named(obs))
        plays = np.arange(envs.num_envs) < episodes - start
        here = start + np.flatnonzero(plays)
        while plays.any():
            obs, reward, terminated, truncated, info = envs.step(act(seen))
            ended = terminated | truncated
            seen = frames.push(envs.named(obs), ended)
            now = here[plays[: len(here)]]
            returns[now] += reward[plays]
            lengths[now] += 1
            if "success" in info:
                has_success = True
                wins[now] |= np.asarray(info["success"], bool)[plays]
            if watch is not None:
                watch(obs, plays)
            plays &= ~ended
    return Evaluation(
        episodes,
        int(wins.sum()) if has_success else None,
        returns.tolist(),
        lengths.tolist(),
        [first_seed + k for k in range(episodes)],
    )


def wilson(wins: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a rate."""
    rate = wins / of
    middle = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z * sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)
