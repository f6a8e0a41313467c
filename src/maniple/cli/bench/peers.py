"""Other people's vector environments over our very environment class, for comparison."""

from __future__ import annotations

from functools import partial
from typing import Any


def single(task: str) -> Any:
    """Make one environment without wrappers; importable, so that any process can."""
    from maniple.registry import make

    return make(task, clip_actions=True)


def gymnasium_async(task: str, num_envs: int, **options: Any) -> Any:
    """Gymnasium's process-per-environment vector env, over shared memory as it recommends."""
    from gymnasium.vector import AsyncVectorEnv

    return AsyncVectorEnv([partial(single, task)] * num_envs, shared_memory=True, **options)


def gymnasium_sync(task: str, num_envs: int) -> Any:
    """Gymnasium's loop in this process."""
    from gymnasium.vector import SyncVectorEnv

    return SyncVectorEnv([partial(single, task)] * num_envs)
