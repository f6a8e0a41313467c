"""What a world model says about the next moment."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from torch import Tensor

from maniple.world.history import History
from maniple.world.shapes import Batch, Shapes


class Prediction(NamedTuple):
    """The next frame, and what comes with it."""

    frame: Tensor
    """(B, channels, h, w), 0 to 1."""
    state: Tensor
    """(B, state_size)."""
    reward: Tensor
    """(B,)."""
    success: Tensor
    """(B,): logit of the task being solved."""
    memory: Tensor
    """(B, memory_size): what the model carries along the episode."""


class WorldModel(Protocol):
    """Any world model; it is called with a batch and returns the terms of its loss."""

    shapes: Shapes
    history: int
    code_size: int

    def __call__(self, batch: Batch, draw: int) -> dict[str, Tensor]: ...
    def blank_memory(self, rows: int) -> Tensor: ...
    def predict(self, history: History, memory: Tensor) -> Prediction: ...
    def codes(self, history: History) -> Tensor:
        """Describe the present in a few numbers, (B, code_size); what ensembles predict."""
        ...
