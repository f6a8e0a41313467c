"""Reward and end episodes by what a classifier sees, instead of by the simulator's truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from maniple.agents.classifier import Classifier
from maniple.core.errors import BadConfig
from maniple.data.episode import Episode

LAST = 3
"""Frames at the end of a solved episode that count as showing success."""


def teach(
    classifier: Classifier,
    episodes: Sequence[Episode],
    updates: int,
    batch: int = 64,
    seed: int = 0,
) -> dict[str, float]:
    """Teach a classifier from episodes: the ends of solved ones, and everything else."""
    rng = np.random.default_rng(seed)
    names = classifier.eye.pictures
    good = [
        (e, t) for e in episodes if e.success for t in range(max(0, len(e) + 1 - LAST), len(e) + 1)
    ]
    bad = [(e, t) for e in episodes for t in range(len(e) + 1 - (LAST if e.success else 0))]
    if not good or not bad:
        raise BadConfig("A classifier needs pictures of success and of failure; one is missing.")
    metrics: dict[str, float] = {}
    solved = np.arange(batch) < batch // 2
    for _ in range(updates):
        chosen = [good[i] for i in rng.integers(0, len(good), batch // 2)]
        chosen += [bad[i] for i in rng.integers(0, len(bad), batch - batch // 2)]
        metrics = classifier.update(
            {n: np.stack([e.obs[n][t] for e, t in chosen]) for n in names}, solved
        )
    return metrics


class ClassifiedReward(gymnasium.vector.VectorWrapper):
    """Gives 1 and ends the episode where the classifier is sure enough, else 0.

    What the simulator knows stays in `info["success"]`, for judging the classifier.
    """

    def __init__(self, env: Any, classifier: Classifier, threshold: float = 0.9) -> None:
        super().__init__(env)
        self._classifier, self._threshold = classifier, threshold
        self._waiting = np.zeros(env.num_envs, np.bool_)

    def __getattr__(self, name: str) -> Any:
        # Layout, action_spec and the like are the environments' own.
        return getattr(self.env, name)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        """Begin new episodes."""
        self._waiting[:] = False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: NDArray) -> tuple[Any, NDArray, NDArray, NDArray, dict]:
        """Step; rows that the classifier ended before are reset, as next-step autoreset does."""
        obs, reward, terminated, truncated, info = self.env.step(actions)
        reset = self._waiting
        if reset.any():
            obs, _ = self.env.reset(options={"reset_mask": reset.copy()})
        seen = self.named(obs)
        solved = (self._classifier.probability(seen) > self._threshold) & ~reset
        ended = (terminated | truncated) & ~reset
        self._waiting = solved & ~ended
        reward = solved.astype(np.float64)
        return obs, reward, (terminated & ~reset) | solved, truncated & ~reset & ~solved, info
