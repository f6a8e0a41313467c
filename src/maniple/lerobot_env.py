"""A vector environment under the names by which LeRobot's evaluator asks for observations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.registry import canonical, find, make_vec

Obs = dict[str, Any]


class LeRobotVectorEnv(VectorWrapper):
    """Observations are 'agent_pos' (what the robot knows of itself) and 'pixels' by camera."""

    def __init__(
        self, envs: Any, states: tuple[str, ...], cameras: Mapping[str, str] | None = None
    ) -> None:
        """Wrap a vector environment.

        Args:
            states: Observations that make up 'agent_pos', in this order.
            cameras: The cameras of pictures that are called otherwise than by them.
        """
        super().__init__(envs)
        self.env: Any = envs
        seen = envs.single_observation_space.spaces
        self._states = [name for name in states if name in seen]
        self._pictures: dict[str, str] = {}
        for name in (str(name) for name, space in seen.items() if _is_picture(space)):
            camera = cameras[name] if cameras and name in cameras else name.removesuffix("_rgb")
            self._pictures[camera] = name
        if not self._states:
            raise BadConfig(
                f"None of {', '.join(states)} is observed, and LeRobot's policies want what the "
                "robot knows of itself: leave observations out."
            )
        if not self._pictures:
            raise BadConfig("LeRobot's policies look at pictures: name cameras=('front', ...).")
        size = sum(int(np.prod(seen[name].shape)) for name in self._states)
        single = spaces.Dict(
            {
                "agent_pos": spaces.Box(-np.inf, np.inf, (size,), np.float32),
                "pixels": spaces.Dict({cam: seen[name] for cam, name in self._pictures.items()}),
            }
        )
        self.single_observation_space = single
        self.observation_space = batch_space(single, envs.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Obs, dict]:
        """Begin new episodes."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._renamed(obs), info

    def step(self, actions: NDArray) -> tuple[Obs, NDArray, NDArray, NDArray, dict]:
        """Take one action in every row."""
        obs, reward, terminated, truncated, info = self.env.step(actions)
        if "final_obs" in info:
            for row in np.flatnonzero(info["_final_obs"]):
                last = {name: array[None] for name, array in info["final_obs"][row].items()}
                info["final_obs"][row] = _first(self._renamed(last))
        return self._renamed(obs), reward, terminated, truncated, info

    # Gymnasium's wrappers pass neither of these on.

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute."""
        return self.env.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of every environment."""
        return self.env.get_attr(name)

    def _renamed(self, obs: Obs) -> Obs:
        rows = len(next(iter(obs.values())))
        states = [np.asarray(obs[name], np.float32).reshape(rows, -1) for name in self._states]
        return {
            "agent_pos": np.concatenate(states, axis=1),
            "pixels": {camera: obs[name] for camera, name in self._pictures.items()},
        }


def make_env(
    task: str, n_envs: int = 1, use_async_envs: bool = False, **options: Any
) -> dict[str, dict[int, LeRobotVectorEnv]]:
    """Return what LeRobot's EnvHub expects of a repository's env.py: suites of vector environments.

    Args:
        task: A task of 'maniple list'.
        n_envs: Environments that are stepped as one.
        use_async_envs: Worker processes instead of threads; both run side by side.
        options: Settings of the environment; cameras are the task's first two unless named.
    """
    kind = find(task)
    settings = {"cameras": kind.cameras[:2], "image_size": (256, 256), **options}
    if use_async_envs:
        settings.setdefault("engine", "process")
    settings.setdefault("autoreset_mode", "NextStep")
    envs = make_vec(task, n_envs, **settings)
    own = tuple(getattr(kind, "proprioception", ()))
    names = getattr(kind, "picture_names", {})
    cameras = {name: picture.removesuffix("_rgb") for picture, name in names.items()}
    return {canonical(task): {0: LeRobotVectorEnv(envs, own, cameras)}}


def _is_picture(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def _first(obs: Obs) -> Obs:
    return {
        name: _first(value) if isinstance(value, dict) else value[0] for name, value in obs.items()
    }
