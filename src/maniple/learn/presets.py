"""Settings that are known to work, per algorithm and task: what a run begins with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from maniple.agents.bc import BCConfig
from maniple.agents.drq import DrQConfig
from maniple.agents.sac import SACConfig
from maniple.envs.config import EnvConfig
from maniple.learn.config import TrainConfig

# Tasks in which an object has to be found and moved: slower, steadier learning.
OBJECT_TASKS = ("so101/PushCube-v0", "so101/LiftCube-v0", "so101/StackCubes-v0")
STEADY: dict[str, Any] = {
    "lr": 5e-4,
    "discount": 0.97,
    "tau": 0.005,
    "temperature": 0.05,
    "layer_norm": True,
}


def preset(algorithm: str, task: str | None = None) -> TrainConfig:
    """Return the settings that a run of this algorithm on this task begins with."""
    task = task or TrainConfig.task
    is_object = task in OBJECT_TASKS
    more: dict[str, Any] = STEADY if is_object else {}
    if algorithm == "sac":
        return TrainConfig(
            task=task, agent=SACConfig(**more), eval_period=10_000 if is_object else 2_000
        )
    # Two cameras: how far away a small ball is cannot be seen with one.
    pixels = EnvConfig(cameras=("front", "overhead"), image_size=(64, 64))
    if algorithm == "drq":
        # A pixel is seven millimetres here: larger shifts would hide where things are.
        agent = DrQConfig(**more, asymmetric=True, actor_every=1, shift=1)
        return TrainConfig(
            task=task,
            num_envs=8,
            batch_size=96,
            steps_per_update=4,
            replay_buffer_capacity=100_000,
            eval_period=4_000,
            demos=20,
            env=pixels,
            agent=agent,
        )
    base = TrainConfig(task=task, demos=50, max_steps=3_000, eval_period=0, eval_n_trajs=100)
    return replace(base, agent=BCConfig(), log_period=200)
