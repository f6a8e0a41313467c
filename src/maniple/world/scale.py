"""Bring numbers of any unit to about the same size."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Scale(nn.Module):
    """Takes the mean off and divides by the spread; both are set once, from data."""

    mean: Tensor
    spread: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("spread", torch.ones(size))

    def fit(self, values: Tensor) -> None:
        """Take mean and spread from (N, size); what never changes keeps its unit."""
        spread = values.std(0)
        self.mean.copy_(values.mean(0))
        self.spread.copy_(torch.where(spread > 1e-4, spread, torch.ones_like(spread)))

    def forward(self, values: Tensor) -> Tensor:
        """Scale (..., size)."""
        return (values - self.mean) / self.spread

    def undo(self, values: Tensor) -> Tensor:
        """Bring scaled numbers back to their unit."""
        return values * self.spread + self.mean
