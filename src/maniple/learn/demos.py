"""Get the demonstrations that a run asks for: from a folder, or from the scripted expert."""

from __future__ import annotations

from maniple.data.demos import collect, load
from maniple.data.episode import Episode
from maniple.learn.config import TrainConfig
from maniple.learn.make import make_envs
from maniple.registry import expert

FIRST_SEED = 500_000_000
"""Demonstrations begin here: neither training nor evaluation plays these episodes."""


def demonstrations(config: TrainConfig) -> list[Episode]:
    """Return the run's demonstrations; none unless asked for."""
    shown: list[Episode] = []
    demos = config.demos
    if demos.demo_path is not None:
        shown += load(demos.demo_path, with_pictures=bool(config.env.cameras))
    if demos.demos:
        shown += record(config, demos.demos)
    return shown


def record(config: TrainConfig, episodes: int) -> list[Episode]:
    """Play the task's expert in the run's own environments."""
    rows = min(episodes, 2 * config.machine.num_envs)
    script = expert(config.run.task, rows)
    envs = make_envs(config, rows)
    try:
        return list(collect(envs, script, episodes, FIRST_SEED + 1000 * config.run.seed))
    finally:
        envs.close()
