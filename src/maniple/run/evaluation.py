"""Measure a policy honestly: separate seeds, one episode each, with a confidence interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.data.frame_stack import FrameStack
from maniple.run.ranks import ALONE, Ranks

Act = Callable[[Mapping[str, NDArray]], NDArray]
Watch = Callable[[int, Any], None]
Begin = Callable[[NDArray[np.bool_]], None]
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
    solved: list[bool] = field(default_factory=list, repr=False)
    """Which episodes were solved; empty where success has no meaning."""

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
    ranks: Ranks = ALONE,
    watch: Watch | None = None,
    begin: Begin | None = None,
) -> Evaluation:
    """Play `episodes` episodes, number k from seed `first_seed + k`, on any number of rows.

    A row that ends takes the next episode at once: no row waits for a slower one. The result
    does not depend on the number of rows or ranks if `act` treats every row alike.

    Args:
        envs: A vector environment with next-step autoreset.
        act: The policy without exploration.
        stack: Pictures that the policy sees at once.
        ranks: Share the episodes out among them; all of them return the same result.
        watch: Called after every step with the number of episodes that have ended, and with what
            the rows see now.
        begin: Called with the rows that begin an episode, before they act in it.
    """
    # Columns: return, length, success, whether success has a meaning.
    results = np.zeros((episodes, 4))
    waiting = list(range(ranks.rank, episodes, ranks.world_size))[::-1]
    if waiting:
        frames = FrameStack(envs.layout, stack)
        _play(envs, act, results, waiting, first_seed, frames, watch, begin)
    results = ranks.total(results)
    has_success = bool(results[:, 3].any())
    return Evaluation(
        episodes,
        int(results[:, 2].sum()) if has_success else None,
        results[:, 0].tolist(),
        results[:, 1].astype(int).tolist(),
        [first_seed + k for k in range(episodes)],
        results[:, 2].astype(bool).tolist() if has_success else [],
    )


def _play(
    envs: Any,
    act: Act,
    results: NDArray[np.float64],
    waiting: list[int],
    first_seed: int,
    frames: FrameStack,
    watch: Watch | None,
    begin: Begin | None,
) -> None:
    rows = envs.num_envs
    begin = begin or (lambda rows: None)
    # Which episode each row plays; -1: it steps along, and nobody counts it.
    playing = np.array([waiting.pop() if waiting else -1 for _ in range(rows)])
    seeds: list[int | None] = [first_seed + max(int(k), 0) for k in playing]
    obs, _ = envs.reset(seed=seeds)
    begin(np.ones(rows, np.bool_))
    seen = frames.begin(envs.named(obs))
    finished = 0
    while (playing >= 0).any():
        obs, reward, terminated, truncated, info = envs.step(act(seen))
        ended = terminated | truncated
        counted = playing >= 0
        now = playing[counted]
        results[now, 0] += reward[counted]
        results[now, 1] += 1
        if "success" in info:
            results[now, 2] = np.maximum(results[now, 2], np.asarray(info["success"])[counted])
            results[now, 3] = 1
        over = ended & counted
        finished += int(over.sum())
        playing[over] = -1
        taking = over.copy()
        taking[np.flatnonzero(over)[len(waiting) :]] = False
        seen = frames.push(envs.named(obs), ended)
        if taking.any():
            chosen = np.flatnonzero(taking)
            playing[chosen] = [waiting.pop() for _ in chosen]
            seeds = [None] * rows
            for row in chosen.tolist():
                seeds[row] = first_seed + int(playing[row])
            obs, _ = envs.reset(seed=seeds, options={"reset_mask": taking})
            begin(taking)
            seen = frames.begin(envs.named(obs), taking)
        if watch is not None:
            watch(finished, obs)


class Evaluator:
    """Evaluates again and again in environments that are made at the first time."""

    def __init__(
        self,
        make_envs: Callable[[], Any],
        episodes: int,
        first_seed: int,
        stack: int,
        ranks: Ranks,
    ) -> None:
        self._make_envs, self._envs = make_envs, None
        self._episodes, self._first_seed, self._stack = episodes, first_seed, stack
        self._ranks = ranks

    def __call__(self, act: Act) -> Evaluation:
        """Play the same episodes as every time."""
        if self._envs is None:
            self._envs = self._make_envs()
        return evaluate(self._envs, act, self._episodes, self._first_seed, self._stack, self._ranks)

    def close(self) -> None:
        """Let go of the environments."""
        if self._envs is not None:
            self._envs.close()
            self._envs = None


def wilson(wins: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a rate."""
    rate = wins / of
    middle = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z * sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return max(0.0, middle - half), min(1.0, middle + half)
