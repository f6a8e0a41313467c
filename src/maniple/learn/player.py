"""Whoever plays a task: its expert, chance, a trained policy, or one behind a port."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.random_actions import random_actions
from maniple.data.demos import Expert
from maniple.data.frame_stack import FrameStack
from maniple.registry import canonical, expert, find, make_vec
from maniple.run.folder import folder_of

EXPERT, RANDOM = "expert", "random"


@dataclass(frozen=True)
class Player:
    """Who acts, in which task, and the settings of environments that fit."""

    task: str
    name: str
    """expert, random, the checkpoint, or the address."""
    settings: dict[str, Any]
    """Settings of `EnvConfig`, where they are not the task's own."""
    actor: Callable[[Any], Expert]
    """Makes the one who acts in a vector environment."""

    def envs(self, num_envs: int, **more: Any) -> Any:
        """Make environments in which it can play."""
        return make_vec(self.task, num_envs, **{**self.settings, **more})


@dataclass(frozen=True)
class Asked:
    """What a policy behind a port is shown and told."""

    states: tuple[str, ...] = ()
    """Observations that are its state; none: what the task's robot knows of itself."""
    prompt: str | None = None
    """What the robot is asked to do; None: the task's own sentence."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the environments: cameras, image_size, control."""


def find_player(
    what: str, policy: str | None = None, best: bool = True, asked: Asked | None = None
) -> Player:
    """Return who plays.

    Args:
        what: A task's id, a run folder, or a checkpoint.
        policy: expert, random, the path of a run or checkpoint, or the address of a server, as in
            ws://127.0.0.1:8000; None: a run's own policy, and a task's expert.
        best: Of a run, take the best checkpoint; False: the newest.
        asked: What a policy behind a port is shown.
    """
    if is_address(policy):
        return _behind_port(what, str(policy), asked or Asked())
    task, settings = what, {}
    if Path(what).exists():
        if policy in (None, what):
            return _trained(Path(what), best)
        from maniple.learn.config import config_of
        from maniple.learn.make import env_options

        config = config_of(folder_of(Path(what)).config())
        task, settings = config.run.task, env_options(config)
    if policy not in (None, EXPERT, RANDOM) and Path(policy).exists():
        player = _trained(Path(policy), best)
        if canonical(player.task) != canonical(task):
            raise BadConfig(f"{player.name} is a policy of {player.task}, not of {task}.")
        return player
    task = canonical(task)
    find(task)
    # An expert may look at more than the run's policy, or than the task shows by itself.
    settings = {**settings, "observations": "all"}
    if policy == RANDOM:
        return Player(task, RANDOM, settings, _Chance)
    if policy not in (None, EXPERT):
        raise BadConfig(
            f"--policy is {policy!r}; it is expert, random, the path of a run or a checkpoint, or "
            "the address of a server, as in ws://127.0.0.1:8000."
        )
    expert(task, 1)  # A task without one is refused before anything starts.
    return Player(task, EXPERT, settings, lambda envs: _expert(task, envs))


def _expert(task: str, envs: Any) -> Expert:
    return expert(task, envs.num_envs, envs.metadata.get("arm_mode"))


def is_address(policy: str | None) -> bool:
    """Whether a policy is behind a port."""
    return policy is not None and policy.startswith(("ws://", "wss://"))


def _behind_port(what: str, url: str, asked: Asked) -> Player:
    if Path(what).exists():
        raise BadConfig(f"{what} is a run, and {url} has no settings of it: name a task.")
    task = canonical(what)
    states = asked.states or tuple(getattr(find(task), "proprioception", ()))
    if not states:
        raise BadConfig(
            f"{task} does not say what its robot knows of itself: name observations, as in "
            "--states joint_pos."
        )
    # Nothing else is sent: a real robot does not know where things are.
    settings = {**asked.settings, "observations": states}
    return Player(task, url, settings, lambda envs: _Remote(url, envs, states, asked.prompt))


def _trained(path: Path, best: bool) -> Player:
    from maniple.learn.make import env_options
    from maniple.learn.policy import load_policy

    if "phase" in folder_of(path).config():
        raise BadConfig(f"{path} holds a world model, which is no policy.")
    policy = load_policy(path, best)
    if policy.config.machine.backend != "mujoco":
        raise BadConfig(f"{path} is a policy of CoppeliaSim's tasks; this is for those on MuJoCo.")
    return Player(
        policy.config.run.task,
        str(policy.checkpoint.path),
        env_options(policy.config),
        lambda envs: Learned(policy, envs),
    )


class _Chance:
    """Uniform actions; an episode's depend on nothing but how many it was before."""

    def __init__(self, envs: Any) -> None:
        self._spec, self._envs = envs.action_spec, envs
        self._streams = [np.random.default_rng(0) for _ in range(envs.num_envs)]

    def act(self, obs: Any) -> NDArray:
        return np.concatenate([random_actions(self._spec, 1, rng) for rng in self._streams])

    def reset(self, rows: NDArray[np.bool_]) -> None:
        seeds = self._envs.np_random_seed
        for row in np.flatnonzero(rows).tolist():
            self._streams[row] = np.random.default_rng(seeds[row])


class _Remote:
    """A policy behind a port, which is told the sentence of every row."""

    def __init__(self, url: str, envs: Any, states: tuple[str, ...], prompt: str | None) -> None:
        from maniple.agents.remote import RemotePolicy

        self._envs, self._prompt = envs, prompt
        self._policy = RemotePolicy(url, envs.num_envs, envs.action_spec, prompt or "", states)
        self.close = self._policy.close

    def act(self, obs: Any) -> NDArray:
        if self._prompt is None:
            self._policy.prompts = list(self._envs.get_attr("task_description"))
        return self._policy.act(self._envs.named(obs))

    def reset(self, rows: NDArray[np.bool_]) -> None:
        self._policy.reset(rows)


class Learned:
    """A trained policy, with the pictures before the last where it looks at several."""

    def __init__(self, policy: Any, envs: Any) -> None:
        self.policy, self._envs = policy, envs
        self._frames = FrameStack(envs.layout, policy.stack)
        self._begins = np.ones(envs.num_envs, np.bool_)

    def act(self, obs: Any) -> NDArray:
        """Return the policy's most likely actions."""
        seen = self._envs.named(obs)
        if self._begins.all():
            shown = self._frames.begin(seen)
        else:
            shown = self._frames.push(seen, np.zeros_like(self._begins))
            if self._begins.any():
                shown = self._frames.begin(seen, self._begins)
        self._begins[:] = False
        return self.policy.act(shown)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Show nothing of what came before in rows that begin an episode."""
        self._begins |= rows
