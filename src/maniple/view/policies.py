"""Those who can act on the page: an expert, noise, a checkpoint, nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import ManipleError
from maniple.core.random_actions import random_actions
from maniple.data.frame_stack import FrameStack

EXPERT, RANDOM, CHECKPOINT, STILL = "expert", "random", "checkpoint", "still"


class Actor(Protocol):
    """Whoever acts in all rows at once."""

    def act(self, obs: Any) -> NDArray:
        """Return the next action of every row."""
        ...

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over in rows."""


class Noise:
    """Uniformly random actions."""

    def __init__(self, envs: Any, seed: int = 0) -> None:
        self._spec, self._rows = envs.action_spec, envs.num_envs
        self._rng = np.random.default_rng(seed)

    def act(self, obs: Any) -> NDArray:
        """Draw an action for every row."""
        return random_actions(self._spec, self._rows, self._rng)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Go on: noise has no memory."""


class Still:
    """Every arm stays where it is."""

    def __init__(self, rest: Callable[[], NDArray]) -> None:
        self._rest = rest

    def act(self, obs: Any) -> NDArray:
        """Return the resting action of every row."""
        return self._rest()

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Go on: it has no memory."""


class CheckpointActor:
    """A trained policy, which sees as many pictures at once as it was trained with."""

    def __init__(self, policy: Any, layout: Any) -> None:
        self.policy = policy
        self._frames = FrameStack(layout, policy.stack)
        self._fresh: NDArray[np.bool_] | None = None
        self._has_begun = False

    @property
    def name(self) -> str:
        """Which checkpoint acts."""
        return self.policy.checkpoint.path.name

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the policy's most likely actions."""
        if not self._has_begun:
            seen = self._frames.begin(obs)
            self._has_begun = True
        else:
            rows = len(next(iter(obs.values())))
            seen = self._frames.push(obs, np.zeros(rows, np.bool_))
            if self._fresh is not None and self._fresh.any():
                seen = self._frames.begin(obs, self._fresh)
        self._fresh = None
        return self.policy.act(seen)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Show nothing of what came before in rows that begin an episode."""
        self._fresh = rows.copy() if self._fresh is None else self._fresh | rows


def task_expert(task: str, envs: Any, obs: Any) -> Actor | None:
    """Return the task's expert; None where there is none, or where it lacks what it looks at."""
    from maniple.registry import EXPERTS, canonical, expert

    if canonical(task) not in EXPERTS:
        return None
    everyone = np.ones(envs.num_envs, np.bool_)
    try:
        made = expert(task, envs.num_envs, envs.metadata.get("arm_mode"))
        made.reset(everyone)
        fits = np.shape(made.act(obs)) == (envs.num_envs, *envs.action_spec.shape)
        made.reset(everyone)
    except (ManipleError, KeyError):
        return None
    return made if fits else None
