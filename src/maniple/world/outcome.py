"""Tell what a moment is worth, and whether it shows the solved task."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.world.layers import mlp

WIDTH = 256


class Outcome(nn.Module):
    """What the state alone tells, and what only the memory knows beyond it.

    Memory holds the actions that were taken: a head that looks there first learns how those move
    who succeed. So states are asked first, and learn from many more steps than have pictures.
    """

    def __init__(self, state_size: int, memory: int) -> None:
        super().__init__()
        self.from_state = None
        if state_size:
            self.from_state = nn.Sequential(
                nn.Linear(state_size, WIDTH), nn.GELU(),
                nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 2),
            )  # fmt: skip
        self.from_memory = mlp(memory + state_size, memory, 2)

    def forward(self, state: Tensor, memory: Tensor) -> Tensor:
        """Return reward and logit of success, (B, 2), of a scaled state."""
        # Where the robot will be is learned from where it was, not from what that was worth.
        state = state.detach()
        said = self.from_memory(torch.cat([memory, state], -1))
        return said if self.from_state is None else said + self.from_state(state)

    def loss(self, state: Tensor, reward: Tensor, success: Tensor) -> Tensor:
        """Error of what states alone tell, (N, state_size)."""
        assert self.from_state is not None
        said_reward, said_success = self.from_state(state).unbind(-1)
        return F.mse_loss(said_reward, reward) + F.binary_cross_entropy_with_logits(
            said_success, success
        )
