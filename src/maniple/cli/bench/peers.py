"""Vector environments of other libraries over our environments, for comparison."""

from __future__ import annotations

import contextlib
import importlib
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

Make = Callable[[], Any]
"""Makes one environment, in whatever process."""

PEERS: dict[str, str] = {
    "gymnasium": "gymnasium",
    "pufferlib": "pufferlib",
    "sb3": "stable_baselines3",
}

TYPE_THIS: dict[str, str] = {
    "pufferlib": "pip install pufferlib (its source package downloads parts while it builds: "
    "it needs a network and a C compiler)",
    "sb3": "pip install -c constraints.txt -e '.[peers]'",
}


def is_installed(peer: str) -> bool:
    """Tell whether a peer can be imported, without importing it."""
    return find_spec(PEERS[peer]) is not None


def single(task: str, options: dict[str, Any] | None = None) -> Any:
    """Make one environment without wrappers; a function of a module, so that workers can import it.

    Args:
        task: A task of 'maniple list', or 'module:class' of a Gymnasium environment.
        options: Settings of a task of ours.
    """
    if ":" in task:
        module, _, name = task.partition(":")
        return getattr(importlib.import_module(module), name)()
    from maniple.registry import make

    return make(task, clip_actions=True, **(options or {}))


def gymnasium_async(make: Make, num_envs: int, **options: Any) -> Any:
    """Gymnasium's process-per-environment vector env, over shared memory as it recommends."""
    from gymnasium.vector import AsyncVectorEnv

    return AsyncVectorEnv([make] * num_envs, shared_memory=True, **options)


def gymnasium_sync(make: Make, num_envs: int, **options: Any) -> Any:
    """Gymnasium's loop in this process."""
    from gymnasium.vector import SyncVectorEnv

    return SyncVectorEnv([make] * num_envs, **options)


def pufferlib_vector(make: Make, num_envs: int, workers: int | None = None) -> Any:
    """PufferLib's loop in this process, or its busy-waiting worker processes."""
    # Importing it leaves a link named 'resources' in the working directory.
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
        vector = importlib.import_module("pufferlib.vector")
        emulation = importlib.import_module("pufferlib.emulation")
    create = partial(emulation.GymnasiumPufferEnv, env_creator=make)
    if workers is None:
        return vector.make(create, backend=vector.Serial, num_envs=num_envs)
    # Without overwork it refuses more workers than physical cores, and we compare those too.
    return vector.make(
        create,
        backend=vector.Multiprocessing,
        num_envs=num_envs,
        num_workers=workers,
        overwork=True,
    )


def sb3_subproc(make: Make, num_envs: int) -> Any:
    """Stable-Baselines3's process per environment, everything pickled through pipes."""
    import multiprocessing

    # Otherwise every child of the fork server imports torch by itself, for half a minute.
    multiprocessing.set_forkserver_preload(["stable_baselines3.common.vec_env", __name__])
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    makers = [make] * num_envs
    return Sb3(vec_env.SubprocVecEnv(makers, start_method="forkserver"))


def sb3_dummy(make: Make, num_envs: int) -> Any:
    """Stable-Baselines3's loop in this process."""
    vec_env = importlib.import_module("stable_baselines3.common.vec_env")
    return Sb3(vec_env.DummyVecEnv([make] * num_envs))


class Sb3:
    """A Stable-Baselines3 vector env with Gymnasium's names."""

    def __init__(self, envs: Any) -> None:
        self._envs = envs
        self.num_envs = envs.num_envs
        self.single_action_space = envs.action_space

    def reset(self, seed: int) -> tuple[Any, dict]:
        """Begin new episodes."""
        self._envs.seed(seed)
        return self._envs.reset(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Take one action in every row."""
        obs, reward, done, infos = self._envs.step(actions)
        return obs, reward, done, done, infos

    def close(self) -> None:
        """End the processes."""
        self._envs.close()
