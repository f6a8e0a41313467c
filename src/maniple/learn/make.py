"""Make what a training run is made of: environments, an agent, a run around them."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig
from maniple.core.lookup import load
from maniple.core.spec import ArraySpec, Layout
from maniple.data.frame_stack import stacked
from maniple.envs.config import ALL, EnvConfig
from maniple.envs.task_model import proprioception
from maniple.learn.algorithms import ALGORITHMS
from maniple.learn.config import AgentConfig, TrainConfig, algorithm_of, task_env
from maniple.registry import TASKS, canonical, find, make_vec, recipe
from maniple.run.device import device_of
from maniple.run.evaluation import FIRST_SEED, Evaluator
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Run
from maniple.run.stop import Stop
from maniple.run.store import Store
from maniple.sim.renderer import AUTO

# Settings that a resumed run may change without becoming another run.
FREE = ("max_steps", "max_updates", "max_minutes", "log_period", "eval_period", "eval_n_trajs",
        "stop_at_success", "checkpoint_period", "torch_threads", "device", "workers", "engine",
        "overlap", "wandb")  # fmt: skip
EVAL_ROWS = 32
"""Environments that an evaluation plays in: more would wait for the last episodes together."""


def make_run(
    config: TrainConfig,
    run_dir: Path,
    ranks: Ranks,
    resume: bool,
    listen: Listen,
    stop: Stop | None,
) -> Run:
    """Make the run around a learner, with evaluation in environments like those of training."""
    config = with_renderer(config)
    episodes = config.schedule.eval_n_trajs
    evaluator = None
    if episodes:
        # A real simulator is a process each.
        most = EVAL_ROWS if config.machine.backend == "mujoco" else config.machine.num_envs
        evaluator = Evaluator(
            partial(make_envs, config, min(most, -(-episodes // ranks.world_size))),
            episodes,
            FIRST_SEED + config.run.seed * 1_000_000,
            stack_of(config.agent),
            ranks,
        )
    store = Store(run_dir, config.flat(), resume, ranks, FREE)
    threads = config.machine.torch_threads
    return Run(config.run, config.schedule, store, ranks, evaluator, listen, stop, threads)


def with_renderer(config: TrainConfig) -> TrainConfig:
    """Name the renderer that 'auto' stands for here, so that the run remembers what drew.

    Other pictures than those that a policy learned from may cost it its success.
    """
    env, machine = config.env, config.machine
    is_open = env.renderer == AUTO and env.cameras and machine.backend == "mujoco"
    if not is_open or not is_ours(config.run.task):
        return config
    drawn_by = recipe(config.run.task, env_options(config)).contract().metadata.get("renderer")
    return config.replace(env=replace(env, renderer=drawn_by or AUTO))


def env_options(config: TrainConfig) -> dict[str, Any]:
    """Return the settings of the environment that differ from the task's own."""
    usual = task_env(config.run.task) if config.machine.backend == "mujoco" else EnvConfig()
    own = ((f.name, getattr(config.env, f.name), getattr(usual, f.name)) for f in fields(EnvConfig))
    return {name: value for name, value, default in own if value != default}


def is_ours(task: str) -> bool:
    """Tell whether a task is of our own table, by whatever spelling."""
    return canonical(task) in TASKS


def make_envs(config: TrainConfig, num_envs: int, **more: Any) -> Any:
    """Make the task's environments with the run's settings."""
    machine, task = config.machine, config.run.task
    options: dict[str, Any] = {"engine": machine.engine, "workers": machine.workers, **more}
    # Somebody's own environment has options of its own; these are our two backends'.
    if is_ours(task) or machine.backend != "mujoco":
        options |= env_options(config)
    if machine.backend != "mujoco":
        options["backend"] = machine.backend
    return make_vec(task, num_envs, **options)


def make_training_envs(config: TrainConfig, num_envs: int) -> Any:
    """Make the environments that a learner plays in: a slow simulator's reset stops no other row.

    Not for evaluation: it begins every episode itself, with a seed of its own.
    """
    is_slow = config.machine.backend == "rlbench"
    return make_envs(config, num_envs, **({"on_reset": "mask"} if is_slow else {}))


def make_agent(
    config: TrainConfig, layout: Layout, action: ArraySpec, noise_seed: int | None = None
) -> Any:
    """Make an untrained agent that fits the task.

    Args:
        noise_seed: Of the agent's draws; the weights begin the same on every rank.
    """
    kind = load(ALGORITHMS[algorithm_of(config)].agent)
    seen = stacked(layout, stack_of(config.agent))
    device, seed = device_of(config.machine.device), config.run.seed
    return kind(seen, action, config.agent, policy_states(config), seed, device, noise_seed)


def policy_states(config: TrainConfig) -> tuple[str, ...]:
    """Arrays of numbers that the policy sees: with cameras only what the robot knows of itself.

    Empty: everything that is no picture.
    """
    if not config.env.cameras or not is_ours(config.run.task):
        return ()
    task = find(config.run.task)
    own = proprioception(task, config.env)
    if not own:
        raise BadConfig(
            f"{config.run.task} does not say what its robot knows of itself, so that a policy on "
            f"pictures would see the simulator's truth. Set {task.__name__}.proprioception to the "
            "names of the robot's own observations."
        )
    chosen = config.env.observations
    if chosen in (None, ALL):
        return own
    return tuple(name for name in own if name in chosen)


def stack_of(config: AgentConfig) -> int:
    """Pictures that the agent sees at once."""
    return getattr(config, "frame_stack", 1)
