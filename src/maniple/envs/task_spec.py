"""Gymnasium's description of a task, which looks up the task's time limit when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gymnasium.envs.registration import EnvSpec

LIMITS: dict[str, Callable[[], int | None]] = {}
"""How to find the limit of a task; its module is imported only then."""


class TaskSpec(EnvSpec):
    """With it Gymnasium's own TimeLimit ends episodes, as its caller says: later, or never."""

    @property
    def max_episode_steps(self) -> int | None:  # pyright: ignore[reportRedeclaration]
        """Steps after which an episode is truncated."""
        given = self.__dict__.get("_max_episode_steps")
        find = LIMITS.get(self.id)
        return find() if given is None and find is not None else given

    @max_episode_steps.setter
    def max_episode_steps(self, steps: Any) -> None:
        self.__dict__["_max_episode_steps"] = steps
