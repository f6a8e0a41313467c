"""What a world model predicts from: the last frames, the last actions, the present state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from maniple.world.shapes import Batch


class History(NamedTuple):
    """The last H frames and the H actions that lead out of them."""

    frames: Tensor
    """(B, H, channels, h, w), the newest last."""
    action: Tensor
    """(B, H, action_size): the last one is the action that is being taken now."""
    state: Tensor
    """(B, state_size)."""

    @property
    def now(self) -> Tensor:
        """The newest frame."""
        return self.frames[:, -1]

    def pushed(self, frame: Tensor, state: Tensor, action: Tensor) -> History:
        """Go on to the next frame, in which another action is taken."""
        frames = torch.cat([self.frames[:, 1:], frame[:, None]], 1)
        return History(frames, torch.cat([self.action[:, 1:], action[:, None]], 1), state)


def history_at(batch: Batch, step: int, length: int) -> History:
    """Return what is known before step number `step` of a batch, all of it true."""
    span = slice(step, step + length)
    return History(batch.frames[:, span], batch.action[:, span], batch.state[:, span][:, -1])
