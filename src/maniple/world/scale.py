"""Bring numbers of any unit to about the same size."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEAST_STEP = 0.03
"""Of the spread: what seldom moves, such as a cube, must not outweigh all else when it does."""


class Scale(nn.Module):
    """Takes the mean off and divides by the spread; both are set once, from data."""

    mean: Tensor
    spread: Tensor
    step: Tensor
    """How far a scaled number usually gets in one step; 0: it never changes in an episode."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))
        self.register_buffer("step", torch.ones(size))

    def fit(self, values: Tensor) -> None:
        """Take all from (N, T, size), steps in a row; what never changes keeps its unit."""
        spread = values.std((0, 1))
        self.mean.copy_(values.mean((0, 1)))
        self.spread.copy_(torch.where(spread > 1e-4, spread, torch.ones_like(spread)))
        step = self(values).diff(dim=1).square().mean((0, 1)).sqrt()
        self.step.copy_(torch.where(step > 1e-4, step, torch.zeros_like(step)))

    def in_steps(self, difference: Tensor) -> Tensor:
        """Measure a difference of scaled numbers by how far they get in one step."""
        return difference / self.step.clamp_min(LEAST_STEP)

    def forward(self, values: Tensor) -> Tensor:
        """Scale (..., size)."""
        return (values - self.mean) / self.spread

    def undo(self, values: Tensor) -> Tensor:
        """Bring scaled numbers back to their unit."""
        return values * self.spread + self.mean
