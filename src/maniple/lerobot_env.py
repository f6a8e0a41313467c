"""A vector environment under the names by which LeRobot's evaluator asks for observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from maniple.core.checked_file import read_json_table
from maniple.core.errors import BadConfig, one_line
from maniple.envs.config import EnvConfig
from maniple.registry import canonical, find, make_vec, task_in_file

Obs = dict[str, Any]
AUTORESET = "SameStep"
"""LeRobot's own mode. Its versions before 0.6 count successes in 'final_info' only, which other
modes do not have."""


class LeRobotVectorEnv(VectorWrapper):
    """Observations are 'agent_pos' (what the robot knows of itself) and 'pixels' by camera."""

    def __init__(
        self,
        envs: Any,
        states: tuple[str, ...],
        cameras: Mapping[str, str] | None = None,
        needs_pictures: bool = True,
    ) -> None:
        """Wrap a vector environment.

        Args:
            states: Observations that make up 'agent_pos', in this order.
            cameras: The cameras of pictures that are called otherwise than by them.
            needs_pictures: Refuse environments that draw none.
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
        if not self._pictures and needs_pictures:
            raise BadConfig("LeRobot's policies look at pictures: name cameras=('front', ...).")
        size = sum(int(np.prod(seen[name].shape)) for name in self._states)
        parts: dict[str, spaces.Space] = {
            "agent_pos": spaces.Box(-np.inf, np.inf, (size,), np.float32)
        }
        if self._pictures:
            parts["pixels"] = spaces.Dict({cam: seen[n] for cam, n in self._pictures.items()})
        single = spaces.Dict(parts)
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

    @property
    def envs(self) -> list[_Row]:
        """The rows one by one: versions before 0.6 look there for attributes."""
        return [_Row(self.env, row) for row in range(self.env.num_envs)]

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
        renamed: Obs = {"agent_pos": np.concatenate(states, axis=1)}
        if self._pictures:
            renamed["pixels"] = {camera: obs[name] for camera, name in self._pictures.items()}
        return renamed


class _Row:
    """One row, as far as its attributes are asked for."""

    def __init__(self, envs: Any, row: int) -> None:
        self._envs, self._row = envs, row

    def __getattr__(self, name: str) -> Any:
        return self._envs.get_attr(name)[self._row]


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
    settings.setdefault("autoreset_mode", AUTORESET)
    envs = make_vec(task, n_envs, **settings)
    own = tuple(getattr(kind, "proprioception", ()))
    return {canonical(task): {0: LeRobotVectorEnv(envs, own, _cameras(task))}}


def env_of(
    policy: str | Path,
    n_envs: int = 1,
    use_async_envs: bool = False,
    task: str | None = None,
    **options: Any,
) -> dict[str, dict[int, LeRobotVectorEnv]]:
    """Return environments for a policy of 'maniple export', with all that it looks at.

    Args:
        policy: The folder that was written.
        n_envs: Environments that are stepped as one.
        use_async_envs: Worker processes instead of threads; both run side by side.
        task: Needed for one of your own, as in module:id: a file alone never has it imported.
        options: Settings of the environment in place of those in training.
    """
    written, settings, states = _origin(Path(policy))
    task = task or task_in_file(written, "The policy")
    if use_async_envs:
        settings.setdefault("engine", "process")
    settings |= {"autoreset_mode": AUTORESET, **options}
    envs = make_vec(task, n_envs, **settings)
    return {canonical(task): {0: LeRobotVectorEnv(envs, states, _cameras(task), False)}}


def _origin(policy: Path) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Read what an exported policy was trained in: task, settings, names of its numbers.

    Only settings of the environment are taken: those of processes could name code to run.
    """
    origin = read_json_table(policy / "maniple.json")
    try:
        found, states = dict(origin["settings"]), origin["states"]
        if not isinstance(states, list) or not all(isinstance(name, str) for name in states):
            raise ValueError("'states' is no list of names")
        if stray := set(found) - {f.name for f in fields(EnvConfig)}:
            raise ValueError(f"{min(stray)!r} is no setting of an environment")
        settings: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in found.items()
        }
        EnvConfig(**settings)
        return str(origin["task"]), settings, tuple(states)
    except (KeyError, TypeError, ValueError) as error:
        raise BadConfig(f"{policy} is no folder of 'maniple export': {one_line(error)}.") from None


def _cameras(task: str) -> dict[str, str]:
    """The cameras of pictures that are called otherwise than by them."""
    names = getattr(find(task), "picture_names", {})
    return {name: picture.removesuffix("_rgb") for picture, name in names.items()}


def _is_picture(space: spaces.Space) -> bool:
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3


def _first(obs: Obs) -> Obs:
    return {
        name: _first(value) if isinstance(value, dict) else value[0] for name, value in obs.items()
    }
