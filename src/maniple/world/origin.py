"""Which checkpoints a run of a later phase was begun with, wherever they lie now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maniple.core.errors import BadConfig
from maniple.run.checkpoint import Checkpoint
from maniple.run.folder import RunFolder

PHASE, ORIGIN = "phase", "begun_with"
"""What config.yaml holds besides the settings."""
FLAGS = {"teacher": "--teacher-path", "student": "--student-checkpoint"}

Origin = Mapping[str, Checkpoint]
"""Checkpoints by the phase that made them."""


def split_phase(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Tell the phase of a run's config.yaml ("" for another run's), and give its settings."""
    sections = {name: value for name, value in config.items() if name not in (PHASE, ORIGIN)}
    return config.get(PHASE, ""), sections


def told(origin: Origin) -> dict[str, dict[str, str]]:
    """Describe checkpoints by what they hold."""
    return {name: {"checkpoint": checkpoint.path.name, "sha256": checkpoint.hash().tobytes().hex()}
            for name, checkpoint in origin.items()}  # fmt: skip


def check_origin(folder: RunFolder, origin: Origin) -> None:
    """Refuse to go on with other weights than a run was begun with.

    They may lie elsewhere by now, and the run that they come from may have gone on.
    """
    begun_with = folder.config().get(ORIGIN, {})
    for name, now in told(origin).items():
        then = begun_with.get(name, now)
        if then["sha256"] != now["sha256"]:
            raise BadConfig(
                f"This run was begun with {then['checkpoint']} of a {name}, and "
                f"{origin[name].path} holds other weights. Name the one that it was begun with: "
                f"{FLAGS[name]} FOLDER/{then['checkpoint']}."
            )
