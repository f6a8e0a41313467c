"""maniple train student: the options of that phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from maniple.cli.train import phase
from maniple.world.config import EnvironmentConfig, LoggingConfig, StudentConfig, TrainingConfig

Flat = tyro.conf.OmitArgPrefixes


@dataclass(frozen=True)
class Options:
    """Phase 2: explore with a teacher's world model."""

    training: Annotated[TrainingConfig, Flat] = field(default_factory=TrainingConfig)
    environment: Annotated[EnvironmentConfig, Flat] = field(default_factory=EnvironmentConfig)
    student: StudentConfig = field(default_factory=StudentConfig)
    logging: Annotated[LoggingConfig, Flat] = field(default_factory=LoggingConfig)

    num_gpus: int | None = None
    """Ranks; the first number after the phase. Without a GPU they are processes on this machine."""

    config: Path | None = None
    """Read settings from an rl_config.yaml; flags come on top."""

    resume: bool = False
    """Go on with the run in the output folder, or in the folder that follows this flag."""

    resume_from: Path | None = None
    """The folder that follows --resume."""

    auto_resume: bool = False
    """Go on if there is a run, else begin."""

    typed: Annotated[tuple[str, ...], tyro.conf.Suppress] = ()
    """All words after the phase, for the ranks that are started."""

    json: bool = False
    """Print one JSON object as the last line."""


def prepare(verb: str, words: list[str]) -> list[str]:
    """Bring what people type to the flags that exist."""
    return phase.prepare("student", Options, words)


def defaults(verb: str, words: list[str]) -> Options:
    """Read --config, or the settings of the run that is resumed."""
    return phase.defaults("student", Options, words)


run = partial(phase.run, "student")
