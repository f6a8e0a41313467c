"""Get the demonstrations that a run asks for: from a folder, or from the scripted expert."""

from __future__ import annotations

import warnings
from contextlib import closing
from pathlib import Path

from maniple.data.demos import check_control, collect, datasets_in, load
from maniple.data.episode import Episode
from maniple.data.lerobot.meta import read_origin
from maniple.learn.config import TrainConfig
from maniple.learn.make import make_envs, with_renderer
from maniple.registry import TASKS, canonical, expert, find

FIRST_SEED = 500_000_000
"""Demonstrations begin here: neither training nor evaluation plays these episodes."""


def demonstrations(config: TrainConfig) -> list[Episode]:
    """Return the run's demonstrations; none unless asked for."""
    shown: list[Episode] = []
    demos = config.demos
    if demos.demo_path is not None:
        for root in datasets_in(demos.demo_path):
            check_control(root, control_of(config))
        shown += load(demos.demo_path, with_pictures=bool(config.env.cameras))
        if config.env.cameras:
            _check_renderer(demos.demo_path, with_renderer(config).env.renderer)
    if demos.demos:
        shown += record(config, demos.demos)
    return shown


def control_of(config: TrainConfig) -> str | None:
    """How the run's environments are acted in; None: nobody can tell."""
    task = canonical(config.run.task)
    own = getattr(find(task), "control", None) if task in TASKS else None
    return config.env.control or own


def _check_renderer(demo_path: Path, now: str) -> None:
    """Say so where the demonstrations were drawn otherwise than what the policy will see."""
    for root in datasets_in(demo_path):
        then = read_origin(root).get("renderer")
        if then is not None and then != now:
            warnings.warn(
                f"The pictures of {root} were drawn by {then!r}, and the environments draw with "
                f"{now!r}. Add --env.renderer {then} to see the same.",
                stacklevel=2,
            )


def record(config: TrainConfig, episodes: int) -> list[Episode]:
    """Play the task's expert in the run's own environments."""
    rows = min(episodes, 2 * config.machine.num_envs)
    script = expert(config.run.task, rows, config.env.control)
    with closing(make_envs(config, rows)) as envs:
        return list(collect(envs, script, episodes, FIRST_SEED + 1000 * config.run.seed))
