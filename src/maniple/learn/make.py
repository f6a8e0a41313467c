"""Make what a training run is made of: environments, agent, demonstrations."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from maniple.agents.bc import BC
from maniple.agents.drq import DrQ
from maniple.agents.sac import SAC
from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.stack import stacked
from maniple.envs.config import EnvConfig
from maniple.learn.config import AgentConfig, TrainConfig, kind_of
from maniple.registry import TASKS, canonical, find, make_vec

AGENTS: dict[str, type] = {"sac": SAC, "drq": DrQ, "bc": BC}


def is_ours(task: str) -> bool:
    """Tell whether a task is of our own table, by whatever spelling."""
    return canonical(task) in TASKS


def make_envs(config: TrainConfig, num_envs: int, **more: Any) -> Any:
    """Make the task's environments with the run's settings."""
    options: dict[str, Any] = {"engine": config.engine, "workers": config.workers, **more}
    if is_ours(config.task):
        changed = {
            f.name: getattr(config.env, f.name)
            for f in fields(EnvConfig)
            if getattr(config.env, f.name) != f.default
        }
        options |= changed
    if config.backend != "mujoco":
        options["backend"] = config.backend
    return make_vec(config.task, num_envs, **options)


def judge_rows(config: TrainConfig) -> int:
    """How many environments an evaluation plays in; a real simulator is a process each."""
    most = 100 if config.backend == "mujoco" else config.num_envs
    return max(1, min(config.eval_n_trajs, most))


def make_agent(config: TrainConfig, layout: Layout, action: ArraySpec, seed: int) -> Any:
    """Make an untrained agent that fits the task."""
    kind = AGENTS[kind_of(config.agent)]
    seen = stacked(layout, stack_of(config.agent))
    return kind(seen, action, config.agent, sees_of(config), seed, device_of(config.device))


def sees_of(config: TrainConfig) -> tuple[str, ...]:
    """Arrays of numbers that the policy may see: with cameras only the robot's own."""
    if not config.env.cameras or not is_ours(config.task):
        return ()
    return getattr(find(config.task), "proprioception", ())


def stack_of(config: AgentConfig) -> int:
    """Pictures that the agent sees at once."""
    return getattr(config, "frame_stack", 1)


def device_of(name: str) -> str:
    """Choose where the networks live."""
    import torch

    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise BadConfig("device is cuda, but this machine has no CUDA GPU. Use --device cpu.")
    return name
