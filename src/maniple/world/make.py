"""Make what a phase is made of: environments, players, what a model sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from maniple.core.errors import BadConfig, UnknownName
from maniple.core.rank import Rank
from maniple.envs.config import EnvConfig
from maniple.envs.task_model import proprioception
from maniple.registry import EXPERTS, TASKS, canonical, expert, find, make_vec
from maniple.world.adapter import Mixed, StudentAdapter
from maniple.world.config import EnvironmentConfig, WorldConfig
from maniple.world.noise import NoisyPlayer, PinkNoise, UniformNoise
from maniple.world.shapes import Shapes

EXPERT_SHARE = 4
"""In a mix, one row in so many is played by the expert."""
MOST_NOISE = 2.0
"""Of a noisy expert's actions, in half their range."""
HELD_OUT_SEED = 1_500_000_000
"""Held-out episodes begin here; training counts from its own small seed."""


def make_envs(config: WorldConfig, rows: int | None = None, **more: Any) -> Any:
    """Make environments whose episodes end after `steps_per_episode` steps and not before."""
    env = config.environment
    options: dict[str, Any] = {
        "cameras": env.cameras, "image_size": env.image_size, "renderer": env.renderer,
        "terminate_on_success": False, "clip_actions": True,
        "max_episode_steps": config.training.steps_per_episode, "engine": env.engine,
        "autoreset_mode": "Disabled", **more,
    }  # fmt: skip
    optional = {
        "control": env.control, "workers": env.workers, "perturb": env.perturb or None,
        "arms": env.arms, "base": env.base or None,
    }  # fmt: skip
    options |= {n: value for n, value in optional.items() if value is not None and n not in more}
    return make_vec(env.task, rows if rows is not None else env.num_envs, **options)


def shapes_of(envs: Any, config: EnvironmentConfig) -> Shapes:
    """Choose what the model sees."""
    return Shapes.of(envs.layout, envs.action_spec, state_names(envs.layout, config))


def state_names(layout: Any, config: EnvironmentConfig) -> tuple[str, ...]:
    """Numbers that the model is told: the robot's own, or all."""
    numbers = tuple(name for name, spec in layout.items() if spec.image is None)
    if config.state == "none":
        return ()
    if config.state == "all" or canonical(config.task) not in TASKS:
        return numbers
    own = proprioception(find(config.task), EnvConfig(arms=config.arms, base=config.base))
    return tuple(name for name in numbers if name in own) or numbers


def make_player(config: WorldConfig, envs: Any, episode: int, source: str = "") -> StudentAdapter:
    """Make who plays round number `episode`; the same number brings the same actions."""
    source = source or config.teacher.source
    task, rows, spec = canonical(config.environment.task), envs.num_envs, envs.action_spec
    rng = np.random.default_rng([config.training.seed, Rank.here().rank, episode])
    if source == "random":
        return UniformNoise(spec, rows, rng)
    pink = PinkNoise(spec, rows, config.training.steps_per_episode, rng)
    if source == "pink":
        return pink
    try:
        scripted = _fitting_expert(task, config.environment, envs)
    except BadConfig as error:
        if source == "mix":
            return pink
        raise BadConfig(f"{error} Take --source pink, random or mix.") from None
    if source == "expert":
        return scripted
    if source == "noisy_expert":
        # Squared: many rows nearly succeed, and some have no chance.
        scripted = NoisyPlayer(scripted, spec, MOST_NOISE * rng.random(rows) ** 2, rng)
        share = 2
    else:
        share = EXPERT_SHARE
    plays = (np.arange(rows) + episode) % share == 0
    return Mixed([(pink, ~plays), (scripted, plays)])


def _fitting_expert(task: str, env: EnvironmentConfig, envs: Any) -> Any:
    """Return a task's expert that sees enough and moves what is driven here, or say why not."""
    if task not in EXPERTS:
        raise BadConfig(f"{task} has no scripted expert.")
    scripted = expert(task, envs.num_envs, env.control)
    blank = {n: np.zeros((envs.num_envs, *s.shape), s.dtype) for n, s in envs.layout.items()}
    try:
        moved = np.shape(scripted.act(blank))[1]
    except UnknownName as error:
        raise BadConfig(f"The scripted expert of {task} sees too little: {error}") from None
    if moved != envs.action_spec.shape[0]:
        raise BadConfig(
            f"The scripted expert of {task} moves {moved} of the {envs.action_spec.shape[0]} "
            "numbers of an action: it knows neither --arms nor --base."
        )
    scripted.reset(np.ones(envs.num_envs, np.bool_))
    return scripted


def round_seed(config: WorldConfig, episode: int) -> int:
    """Seed of the first row of a round; no two rounds, ranks or rows share one."""
    rank = Rank.here()
    number = (config.training.seed * 100_000 + episode) * rank.world_size + rank.rank
    return (number * config.environment.num_envs) % HELD_OUT_SEED
