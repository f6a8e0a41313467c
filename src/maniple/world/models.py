"""The table of world models, with sizes that are known to train well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from maniple.core.errors import UnknownName, closest
from maniple.core.lookup import load
from maniple.world.config import TeacherConfig
from maniple.world.prediction import WorldModel
from maniple.world.shapes import Shapes


@dataclass(frozen=True)
class ModelConfig:
    """How large a world model is, and what it remembers."""

    history: int = 4
    heads: int = 5
    width: int = 16
    """Channels of the finest layer."""
    memory: int = 128
    """Numbers of the GRU's memory."""
    latent: int = 64
    """Numbers of a latent."""
    warm_steps: int = 2
    """True steps before an open-loop stretch, in which the memory fills."""
    decoder: bool = True


@dataclass(frozen=True)
class Preset:
    """One row: which model, its size, and settings that are known to work."""

    about: str
    model: str
    size: dict[str, Any]
    batch_size: int
    learning_rate: float
    weights: dict[str, float]
    """Weights of the terms of the loss."""
    paces: dict[str, float] = field(default_factory=dict)
    """Parts that learn so many times faster than the others."""


_PIXELS = "maniple.world.pixel_model:PixelModel"
_DRAWING = {
    "picture": 10.0,
    "state": 1.0,
    "walk": 1.0,
    "outcome": 0.3,
    "reward": 0.1,
    "success": 0.1,
    "ensemble": 1.0,
}
_PACES = {"walk": 3.0}
"""What the body does needs few numbers, and a picture is only as right as they are."""
_LATENT = {"latent": 1.0, "gaussian": 0.1, "state": 3.0, "reward": 0.1, "success": 0.1,
           "ensemble": 1.0, "picture": 10.0}  # fmt: skip
MODELS: dict[str, Preset] = {
    "nano": Preset("Pixels, for a CPU.", _PIXELS, {"width": 16}, 16, 3e-3, _DRAWING, _PACES),
    "small": Preset(
        "Pixels, for a small GPU.", _PIXELS, {"width": 48, "memory": 256}, 32, 1e-3, _DRAWING,
        _PACES,
    ),
    "base": Preset(
        "Pixels, for a large GPU.", _PIXELS, {"width": 128, "memory": 512}, 64, 5e-4, _DRAWING,
        _PACES,
    ),
    "latent": Preset(
        "No pictures needed: for planning.", "maniple.world.latent_model:LatentModel",
        {"width": 16}, 96, 1e-3, _LATENT,
    ),
}  # fmt: skip


def find_preset(name: str) -> Preset:
    """Return a row of the table."""
    if name not in MODELS:
        raise UnknownName(
            f"No world model is named {name!r}.{closest(name, MODELS)} There are: "
            f"{', '.join(MODELS)}."
        )
    return MODELS[name]


def make_model(shapes: Shapes, config: TeacherConfig, seed: int) -> WorldModel:
    """Make an untrained model; its weights are the same on every rank."""
    preset = find_preset(config.model)
    size = ModelConfig(config.history, config.heads, decoder=config.decoder, **preset.size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load(preset.model)(shapes, size)
