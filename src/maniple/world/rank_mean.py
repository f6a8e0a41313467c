"""Means over the batches of all ranks, through which gradients flow."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def rank_mean(mean: Tensor) -> Tensor:
    """Average a mean over all ranks; alone, it stays as it is.

    Statistics of a batch then are those of the batches of all ranks together.
    """
    if world_size() == 1:
        return mean
    return _Sum.apply(mean) / world_size()  # type: ignore[operator]


def world_size() -> int:
    """How many ranks there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


class _Sum(torch.autograd.Function):
    """The sum over ranks; its gradient is the sum of all ranks' gradients.

    On the default group, which torch closes: a group of our own would outlive it and abort at
    exit. Both ranks reach these calls and DDP's in the same order, that of one graph.
    """

    @staticmethod
    def forward(ctx: Any, mine: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _summed(mine)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _summed(gradient)


def _summed(tensor: Tensor) -> Tensor:
    total = tensor.detach().clone().contiguous()
    dist.all_reduce(total)
    return total
