"""Means over the batches of all ranks, through which gradients flow."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor


def rank_mean(mean: Tensor) -> Tensor:
    """Average a mean over all ranks; alone, it stays as it is.

    Statistics of a batch then are those of the batches of all ranks together.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return mean
    from torch.distributed.nn.functional import all_reduce

    return all_reduce(mean) / dist.get_world_size()
