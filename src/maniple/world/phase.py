"""What every phase has around it: the run, its folder, its names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig
from maniple.run.config import RunConfig, Schedule
from maniple.run.folder import Names, plain
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Run
from maniple.run.stop import Stop
from maniple.run.store import Store
from maniple.world.config import WorldConfig

NAMES = Names(checkpoints=".", checkpoint="checkpoint-{step}", metrics="episode_metrics.jsonl")
"""The tree that users of this pipeline know."""
KEPT = 1_000
"""Checkpoints that stay: the next phase may begin from any of them."""
FREE = ("teacher.cache", "training.num_episodes", "training.save_every", "training.log_every",
        "training.max_minutes", "training.torch_threads", "training.device",
        "environment.engine", "environment.workers", "adversarial.total_iterations",
        "logging.console_level", "logging.file_level")  # fmt: skip
"""Settings that a resumed run may change without becoming another run."""


def run_dir(config: WorldConfig, phase: str) -> Path:
    """Return the folder of a phase's run."""
    return Path(getattr(config, phase).output_dir)


def described(config: WorldConfig, phase: str) -> dict[str, Any]:
    """Return the settings that a run folder keeps."""
    return {"phase": phase, **plain(config)}


def make_run(
    config: WorldConfig,
    phase: str,
    ranks: Ranks,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
) -> Run:
    """Make the run around a phase's learner; its steps are rounds of episodes."""
    training = config.training
    total = config.adversarial.total_iterations if phase == "adversarial" else training.num_episodes
    run = RunConfig(config.environment.task, total, None, training.max_minutes, None, training.seed)
    schedule = Schedule(training.log_every, 0, 0, training.save_every)
    store = Store(
        run_dir(config, phase), described(config, phase), resume, ranks, FREE, NAMES, KEPT
    )
    return Run(run, schedule, store, ranks, None, listen, stop, training.torch_threads)


def check_ranks(wanted: int | None, ranks: Ranks) -> None:
    """Stop where another number of ranks runs than was asked for."""
    if wanted is not None and wanted != ranks.world_size:
        raise BadConfig(
            f"{wanted} ranks were asked for, and {ranks.world_size} run. Let 'maniple train' start "
            f"them, or use torchrun --nproc-per-node {wanted}."
        )
