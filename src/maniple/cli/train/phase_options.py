"""What the three phases of the world-model pipeline are told on the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from maniple.world.config import (
    AdversarialConfig,
    EnvironmentConfig,
    LoggingConfig,
    StudentConfig,
    TeacherConfig,
    TrainingConfig,
)

Flat = tyro.conf.OmitArgPrefixes


@dataclass(frozen=True)
class PhaseOptions:
    """What every phase takes."""

    phase: ClassVar[str]

    training: Annotated[TrainingConfig, Flat] = field(default_factory=TrainingConfig)
    environment: Annotated[EnvironmentConfig, Flat] = field(default_factory=EnvironmentConfig)
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


@dataclass(frozen=True)
class TeacherOptions(PhaseOptions):
    """Phase 1: learn a world model."""

    phase = "teacher"
    teacher: TeacherConfig = field(default_factory=TeacherConfig)


@dataclass(frozen=True)
class StudentOptions(PhaseOptions):
    """Phase 2: explore with a teacher's world model."""

    phase = "student"
    student: StudentConfig = field(default_factory=StudentConfig)


@dataclass(frozen=True)
class AdversarialOptions(PhaseOptions):
    """Phase 3: an explorer against the world model."""

    phase = "adversarial"
    adversarial: AdversarialConfig = field(default_factory=AdversarialConfig)


OPTIONS: dict[str, type[PhaseOptions]] = {
    kind.phase: kind for kind in (TeacherOptions, StudentOptions, AdversarialOptions)
}
