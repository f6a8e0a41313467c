"""Begin a measurement of the world-model pipeline with a teacher, and tell its figures."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from maniple.world.config import WorldConfig
from maniple.world.explore import seen_alike
from maniple.world.teacher_checkpoint import LoadedTeacher


def tell(**found: Any) -> None:
    """Print a JSON line."""
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in found.items()}))


def of_teacher(teacher: LoadedTeacher, seed: int, horizon: int | None = None) -> WorldConfig:
    """The teacher's environments and its episodes, in rounds of 16 rows, with a seed of its own."""
    config = seen_alike(WorldConfig(), teacher)
    env = replace(config.environment, num_envs=16)
    # Curiosity must learn as fast as it sees: with 10 updates in a round it runs after itself.
    steps = teacher.config.training.steps_per_episode
    training = replace(
        config.training, seed=seed + 100, steps_per_episode=steps, updates_per_episode=40
    )
    student = config.student if horizon is None else replace(config.student, horizon=horizon)
    own = {"environment": env, "training": training, "student": student}
    return replace(config, teacher=teacher.config.teacher, **own)
