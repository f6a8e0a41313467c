"""What is known of the present: the last frames, the last actions, the state, the memory."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from maniple.world.shapes import Batch


class Moment(NamedTuple):
    """Everything that a prediction starts from, except the action that is being taken."""

    frames: Tensor
    """(B, H, channels, h, w), the newest last."""
    past: Tensor
    """(B, H - 1, action_size): the actions between those frames."""
    state: Tensor
    """(B, state_size)."""
    memory: Tensor
    """(B, memory_size): what the model carries along the episode."""

    @property
    def now(self) -> Tensor:
        """The newest frame."""
        return self.frames[:, -1]

    def actions(self, action: Tensor) -> Tensor:
        """The last H actions, the one being taken included, (B, H, action_size)."""
        return torch.cat([self.past, action[:, None]], 1)

    def after(self, action: Tensor, frame: Tensor, state: Tensor, memory: Tensor) -> Moment:
        """Go on to the next frame."""
        frames = torch.cat([self.frames[:, 1:], frame[:, None]], 1)
        return Moment(frames, self.actions(action)[:, 1:], state, memory)


def first_moment(frame: Tensor, state: Tensor, history: int, action_size: int, memory: Tensor):
    """An episode begins: its first frame stands for all that were before it."""
    frames = frame[:, None].expand(-1, history, *frame.shape[1:])
    return Moment(frames, frame.new_zeros(len(frame), history - 1, action_size), state, memory)


def moment_at(batch: Batch, step: int, history: int, memory: Tensor) -> Moment:
    """Return what is known before step number `step` of a batch, all of it true."""
    frames = batch.frames[:, step : step + history]
    past = batch.action[:, step : step + history - 1]
    return Moment(frames, past, batch.state[:, step + history - 1], memory)


def true_action(batch: Batch, step: int, history: int) -> Tensor:
    """Return the action of step number `step`."""
    return batch.action[:, history - 1 + step]
