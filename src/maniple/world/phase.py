"""What every phase has around it: the run, its folder, its names."""

from __future__ import annotations

from pathlib import Path

from maniple.core.errors import BadConfig
from maniple.run.config import RunConfig, Schedule
from maniple.run.folder import Names, RunFolder, plain
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Run
from maniple.run.stop import Stop
from maniple.run.store import Store
from maniple.world.config import StudentConfig, WorldConfig
from maniple.world.origin import ORIGIN, PHASE, Known, Origin, begun_with, check_origin, known

NAMES = Names(checkpoints=".", checkpoint="checkpoint-{step}", metrics="episode_metrics.jsonl")
"""The tree that users of this pipeline know."""
KEPT = 1_000
"""Checkpoints that stay: the next phase may begin from any of them."""
FREE = ("teacher.cache", "teacher.output_dir", "student.output_dir", "adversarial.output_dir",
        "training.num_episodes", "training.save_every",
        "training.log_every", "training.max_minutes", "training.torch_threads", "training.device",
        "environment.engine", "environment.workers", "adversarial.total_iterations",
        "logging.console_level", "logging.file_level")  # fmt: skip
"""Settings that a resumed run may change without becoming another run."""
MOVED = ("student.teacher_path", "adversarial.teacher_checkpoint", "adversarial.student_checkpoint",
         *(f"{ORIGIN}.{name}.checkpoint" for name in ("teacher", "student")))  # fmt: skip
"""The same, where it was written down what the checkpoints hold."""


def run_dir(config: WorldConfig, phase: str) -> Path:
    """Return the folder of a phase's run."""
    return Path(getattr(config, phase).output_dir)


def begun(config: WorldConfig, phase: str, resume: bool) -> dict[str, Known]:
    """Read which checkpoints the run that goes on was begun with."""
    return begun_with(RunFolder(run_dir(config, phase), NAMES)) if resume else {}


def rounds_of(config: WorldConfig, phase: str) -> int:
    """Return after how many rounds of episodes a phase ends."""
    own = config.adversarial.total_iterations if phase == "adversarial" else None
    return own or config.training.num_episodes


def check_settings(config: WorldConfig, phase: str) -> None:
    """Refuse what a phase could not use, before anything is started or written."""
    from maniple.world.teacher_checkpoint import find_checkpoint

    student, adversarial = config.student, config.adversarial
    if phase == "student":
        check_weights(student)
        find_checkpoint(student.teacher_path, "--teacher-path")
    if phase == "adversarial":
        find_checkpoint(adversarial.teacher_checkpoint, "--teacher-checkpoint")
        if adversarial.student_checkpoint is not None:
            find_checkpoint(adversarial.student_checkpoint, "--student-checkpoint")


def check_weights(student: StudentConfig) -> None:
    """Refuse weights of rewards that mpc does not plan for; of a server's policy they only tell."""
    idle = [name for name in ("memory_approach", "uncertainty", "raw_error")
            if getattr(student, name)]  # fmt: skip
    if idle and student.algorithm == "mpc" and student.port is None:
        raise BadConfig(
            f"{idle[0]} is {getattr(student, idle[0])}, but mpc plans for disagreement; take "
            "--algorithm ppo."
        )


def make_run(
    config: WorldConfig,
    phase: str,
    ranks: Ranks,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
    origin: Origin | None = None,
) -> Run:
    """Make the run around a phase's learner; its steps are rounds of episodes.

    Args:
        origin: The checkpoints that the phase builds on.
    """
    training = config.training
    total = rounds_of(config, phase)
    run = RunConfig(config.environment.task, total, None, training.max_minutes, None, training.seed)
    schedule = Schedule(training.log_every, 0, 0, training.save_every)
    origin, then, free = origin or {}, begun(config, phase, resume), FREE
    if then:
        check_origin(then, origin)
        free = (*FREE, *MOVED)
    told = {name: known(checkpoint)._asdict() for name, checkpoint in origin.items()}
    if resume and not then and RunFolder(run_dir(config, phase)).is_used:
        told = {}  # Begun before there was a record: what it was begun with is not known.
    settings = {PHASE: phase, **({ORIGIN: told} if told else {}), **plain(config)}
    store = Store(run_dir(config, phase), settings, resume, ranks, free, NAMES, KEPT)
    return Run(run, schedule, store, ranks, None, listen, stop, training.torch_threads)


def check_ranks(wanted: int | None, ranks: Ranks) -> None:
    """Stop where another number of ranks runs than was asked for."""
    if wanted is not None and wanted != ranks.world_size:
        raise BadConfig(
            f"{wanted} ranks were asked for, and {ranks.world_size} run. Let 'maniple train' start "
            f"them, or use torchrun --nproc-per-node {wanted}."
        )
