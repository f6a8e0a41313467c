"""Follow true episodes step by step, as a model sees them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.world.moment import Moment, first_moment
from maniple.world.prediction import WorldModel


class Tracker:
    """Holds the present moment of every row, and its code."""

    def __init__(self, model: WorldModel) -> None:
        self.model = model
        self.device = model.blank_memory(0).device
        self.moment: Moment | None = None
        self.before: Tensor | None = None
        self.code: Tensor | None = None
        self._action: Tensor | None = None

    def reset(self) -> None:
        """The next observation begins an episode in all rows."""
        self.moment = self._action = None

    @torch.no_grad()
    def see(self, obs: Mapping[str, NDArray]) -> Moment:
        """Take the next observation of every row."""
        model, shapes = self.model, self.model.shapes
        frame, state = shapes.frames(obs, self.device), shapes.state(obs, self.device)
        if self.moment is None or self._action is None:
            memory = model.blank_memory(len(frame))
            self.moment = first_moment(frame, state, model.history, shapes.action_size, memory)
            self.before = self.code = model.codes(self.moment)
            return self.moment
        memory = model.remember(self.moment, self._action)
        self.moment = self.moment.after(self._action, frame, state, memory)
        self.before, self.code = self.code, model.codes(self.moment)
        return self.moment

    def did(self, action: Tensor) -> None:
        """Note the action that is being taken."""
        self._action = action

    @property
    def last(self) -> Tensor:
        """The action before the present moment."""
        assert self.moment is not None, "see() comes first"
        return self.moment.past[:, -1]
