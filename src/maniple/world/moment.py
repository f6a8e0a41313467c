"""What is known of the present: the last frames, actions and states, and the memory."""

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
    states: Tensor
    """(B, H, state_size), as many as frames: how the body came here tells where its servos pull."""
    memory: Tensor
    """(B, memory_size): what the model carries along the episode."""

    @property
    def now(self) -> Tensor:
        """The newest frame."""
        return self.frames[:, -1]

    @property
    def state(self) -> Tensor:
        """The newest state."""
        return self.states[:, -1]

    def actions(self, action: Tensor) -> Tensor:
        """The last H actions, the one being taken included, (B, H, action_size)."""
        return torch.cat([self.past, action[:, None]], 1)

    def after(self, action: Tensor, frame: Tensor, state: Tensor, memory: Tensor) -> Moment:
        """Go on to the next frame."""
        frames = torch.cat([self.frames[:, 1:], frame[:, None]], 1)
        states = torch.cat([self.states[:, 1:], state[:, None]], 1)
        return Moment(frames, self.actions(action)[:, 1:], states, memory)


def first_moment(frame: Tensor, state: Tensor, history: int, action_size: int, memory: Tensor):
    """An episode begins: its first frame and state stand for all that were before them."""
    frames = frame[:, None].expand(-1, history, *frame.shape[1:])
    states = state[:, None].expand(-1, history, -1)
    return Moment(frames, frame.new_zeros(len(frame), history - 1, action_size), states, memory)


def moment_at(batch: Batch, step: int, history: int, memory: Tensor) -> Moment:
    """Return what is known before step number `step` of a batch, all of it true."""
    frames = batch.frames[:, step : step + history]
    past = batch.action[:, step : step + history - 1]
    return Moment(frames, past, batch.state[:, step : step + history], memory)


def true_action(batch: Batch, step: int, history: int) -> Tensor:
    """Return the action of step number `step`."""
    return batch.action[:, history - 1 + step]
