"""Which checkpoints a run of a later phase was begun with, wherever they lie now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from maniple.core.checked_file import BadFile
from maniple.core.errors import BadConfig
from maniple.run.checkpoint import Checkpoint
from maniple.run.folder import CONFIG, RunFolder

PHASE, ORIGIN = "phase", "begun_with"
"""What config.yaml holds besides the settings."""
FLAGS = {"teacher": "--teacher-path", "student": "--student-checkpoint"}

Origin = Mapping[str, Checkpoint]
"""Checkpoints by the phase that made them."""


class Known(NamedTuple):
    """What a run folder keeps of a checkpoint that the run was begun with."""

    checkpoint: str
    sha256: str


def split_phase(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Tell the phase of a run's config.yaml ("" for another run's), and give its settings."""
    sections = {name: value for name, value in config.items() if name not in (PHASE, ORIGIN)}
    return config.get(PHASE, ""), sections


def known(checkpoint: Checkpoint) -> Known:
    """Describe a checkpoint by what it holds."""
    return Known(checkpoint.path.name, checkpoint.hash().tobytes().hex())


def begun_with(folder: RunFolder) -> dict[str, Known]:
    """Read what a run was begun with; nothing, where it is new or older than this record."""
    found = folder.config().get(ORIGIN, {}) if folder.is_used else {}
    begun: dict[str, Known] = {}
    try:
        begun = {name: Known(**entry) for name, entry in found.items()}
        is_right = begun.keys() <= FLAGS.keys()
    except (AttributeError, TypeError):
        is_right = False
    if not is_right or not all(isinstance(part, str) for entry in begun.values() for part in entry):
        raise BadFile(
            f"{ORIGIN} in {folder.path / CONFIG} does not say which checkpoints the run was begun "
            "with. Put back what was there, or begin another --output-dir."
        )
    return begun


def check_origin(begun: Mapping[str, Known], origin: Origin) -> None:
    """Refuse to go on with other checkpoints than a run was begun with, wherever they lie."""
    for name, then in begun.items():
        if name not in origin:
            raise BadConfig(
                f"This run was begun with {then.checkpoint} of a {name}. Name it: {FLAGS[name]} "
                f"FOLDER/{then.checkpoint}."
            )
    for name, checkpoint in origin.items():
        if name not in begun:
            raise BadConfig(f"This run was begun without a {name}: leave {FLAGS[name]} out.")
        then = begun[name]
        if then.sha256 != known(checkpoint).sha256:
            raise BadConfig(
                f"This run was begun with {then.checkpoint} of a {name}, and {checkpoint.path} is "
                f"another one. Name the one that it was begun with: {FLAGS[name]} "
                f"FOLDER/{then.checkpoint}."
            )
