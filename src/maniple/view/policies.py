"""Those who can act on the page, besides a trained policy: an expert, noise, nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import ManipleError
from maniple.core.random_actions import random_actions

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
