"""Load a teacher's world model, all of it or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.core.errors import BadConfig
from maniple.run.checkpoint import MANIFEST, Checkpoint, Checkpoints
from maniple.run.folder import folder_of
from maniple.run.tree import unsplit
from maniple.world.config import WorldConfig, config_of
from maniple.world.models import make_model
from maniple.world.origin import Known, split_phase
from maniple.world.phase import NAMES
from maniple.world.prediction import WorldModel
from maniple.world.shapes import Shapes

LISTED = 6
"""Names of each kind that a complaint lists."""


class LoadedTeacher(NamedTuple):
    """A trained model, and what it was trained with."""

    model: WorldModel
    shapes: Shapes
    config: WorldConfig
    checkpoint: Checkpoint


def find_checkpoint(path: str | Path | None, flag: str, then: Known | None = None) -> Checkpoint:
    """Find the checkpoint that is meant: a run folder, or one of its checkpoints.

    Args:
        then: What a run was begun with. A folder may have gone on since.
    """
    if path is None:
        raise BadConfig(
            f"This phase needs a trained one: add {flag} outputs/teacher_rl/checkpoint-100."
        )
    path = Path(path)
    if then is not None and (path / then.checkpoint / MANIFEST).exists():
        path /= then.checkpoint
    if not path.exists():
        raise BadConfig(f"There is no checkpoint at {path}. Name another with {flag}.")
    if (path / MANIFEST).exists():
        found = Checkpoint(path)
        if complaint := found.complaint():
            raise BadConfig(f"{complaint}. A torn checkpoint is not loaded; choose another.")
        return found
    latest = Checkpoints(path, names=NAMES).latest()
    if latest is None:
        raise BadConfig(f"{path} holds no whole checkpoint (checkpoint-N with a {MANIFEST}).")
    return latest


def load_teacher(
    path: str | Path | None, flag: str = "--teacher-path", then: Known | None = None
) -> LoadedTeacher:
    """Load the world model of any phase's checkpoint."""
    checkpoint = find_checkpoint(path, flag, then)
    _, settings = split_phase(folder_of(checkpoint.path).config())
    config = config_of(settings, str(checkpoint.path.parent / "config.yaml"))
    state = unsplit(checkpoint.about()["state"], checkpoint.arrays())["learner"]
    told = state["shapes"]
    lists = {name: tuple(told[name]) for name in ("cameras", "states")}
    shapes = Shapes(**{**told, **lists})
    teacher = config.teacher
    if kept := state.get("teacher"):
        # A later phase keeps what its teacher was made with.
        teacher = config_of({"teacher": kept}).teacher
    model: Any = make_model(shapes, teacher, 0)
    load_strictly(model, state["updater"]["model"], str(checkpoint.path))
    model.eval()
    return LoadedTeacher(model, shapes, replace(config, teacher=teacher), checkpoint)


def load_strictly(model: torch.nn.Module, arrays: Mapping[str, NDArray], where: str) -> None:
    """Copy weights into a model; where names or shapes differ, say which and load nothing."""
    wanted: dict[str, Tensor] = {f"model.{k}": v for k, v in model.state_dict().items()}
    missing = sorted(wanted.keys() - arrays.keys())
    stray = sorted(arrays.keys() - wanted.keys())
    other = [f"{name}: {tuple(arrays[name].shape)}, not {tuple(wanted[name].shape)}"
             for name in sorted(wanted.keys() & arrays.keys())
             if tuple(wanted[name].shape) != tuple(arrays[name].shape)]  # fmt: skip
    if missing or stray or other:
        kinds = (("missing", missing), ("not known", stray), ("of another shape", other))
        lines = [f"  {len(names)} {kind}: {_listed(names)}" for kind, names in kinds if names]
        raise BadConfig(
            f"The weights in {where} do not fit this model; nothing was loaded.\n"
            + "\n".join(lines)
        )
    with torch.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(torch.from_numpy(arrays[name].copy()))


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
