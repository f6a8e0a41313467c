"""Several small models of one thing, whose disagreement tells what is not known yet."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Ensemble(nn.Module):
    """Heads that predict how a code changes, each from its own weights and its own data.

    All heads are one batched matrix product: five of them cost little more than one.
    """

    def __init__(self, code_size: int, action_size: int, heads: int = 5, width: int = 128) -> None:
        super().__init__()
        inputs = 2 * code_size + 2 * action_size
        self.heads = heads
        self.first = _Linear(heads, inputs, width)
        self.second = _Linear(heads, width, width)
        self.last = _Linear(heads, width, code_size)

    def forward(self, before: Tensor, code: Tensor, last: Tensor, action: Tensor) -> Tensor:
        """Predict the next code by every head, (heads, B, code_size).

        Args:
            before: The code one step earlier, (B, code_size).
            code: The present one.
            last: The action that led to it.
            action: The one being taken.
        """
        seen = torch.cat([code, code - before, last, action], -1)
        hidden = F.gelu(self.second(F.gelu(self.first(seen.expand(self.heads, *seen.shape)))))
        return code + self.last(hidden)

    def loss(self, before: Tensor, code: Tensor, last: Tensor, action: Tensor, after: Tensor):
        """Error of all heads; each learns from its own half of the data and stays different."""
        error = (self(before, code, last, action) - after).square().mean(-1)
        return 2 * (error * self._own_half(action)).mean()

    def _own_half(self, action: Tensor) -> Tensor:
        """Choose rows by what they hold: the same on every rank, and every time they are drawn."""
        mixed = action.sum(-1, keepdim=True) * torch.arange(1, self.heads + 1, device=action.device)
        return (torch.frac(mixed.abs() * 97.13) < 0.5).float().T


def disagreement(predicted: Tensor) -> Tensor:
    """Mean variance over heads of (heads, ..., code_size), (...)."""
    return predicted.var(0).mean(-1)


class _Linear(nn.Module):
    """A linear layer for every head."""

    def __init__(self, heads: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(heads, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(heads, 1, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return torch.baddbmm(self.bias, x, self.weight)
