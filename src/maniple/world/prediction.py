"""What a world model says about the next moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from maniple.world.ensemble import Ensemble
from maniple.world.moment import Moment
from maniple.world.shapes import Batch, Shapes


class Prediction(NamedTuple):
    """The next frame, and what comes with it."""

    frame: Tensor
    """(B, channels, h, w), 0 to 1; NaN where the model cannot draw."""
    state: Tensor
    """(B, state_size)."""
    reward: Tensor
    """(B,)."""
    success: Tensor
    """(B,): logit of the task being solved."""


class WorldModel(Protocol):
    """Any world model. Called with a batch, it returns the terms of its loss."""

    shapes: Shapes
    history: int
    code_size: int
    memory_size: int
    ensemble: Ensemble

    @property
    def can_draw(self) -> bool: ...

    def __call__(self, batch: Batch, draw: int) -> dict[str, Tensor]: ...
    def calibrate(self, state: Tensor) -> None: ...
    def blank_memory(self, rows: int) -> Tensor: ...
    def remember(self, moment: Moment, action: Tensor) -> Tensor:
        """Return the memory after an action was taken in a true moment."""
        ...

    def warmed(self, batch: Batch, steps: int) -> Tensor:
        """Run the memory over the first steps of a batch, as they were."""
        ...

    def begin(self, moment: Moment) -> Any:
        """Return where an imagined future starts: a tuple of tensors, rows first."""
        ...

    def advance(self, at: Any, action: Tensor) -> tuple[Prediction, Any]:
        """Imagine one step."""
        ...

    def codes(self, moment: Moment) -> Tensor:
        """Describe the present in a few numbers, (B, code_size), which the ensemble predicts."""
        ...


def rollout(model: WorldModel, moment: Moment, actions: Tensor) -> Iterator[Prediction]:
    """Predict open loop, from the model's own frames, a step for each of (B, K, action_size)."""
    at = model.begin(moment)
    for action in actions.unbind(1):
        said, at = model.advance(at, action)
        yield said
