"""Means over the batches of all ranks, through which gradients flow."""

from __future__ import annotations

from functools import lru_cache

import torch.distributed as dist
from torch import Tensor


def rank_mean(mean: Tensor) -> Tensor:
    """Average a mean over all ranks; alone, it stays as it is.

    Statistics of a batch then are those of the batches of all ranks together.
    """
    if world_size() == 1:
        return mean
    from torch.distributed.nn.functional import all_reduce

    return all_reduce(mean, group=_own_group(id(dist.group.WORLD))) / world_size()


def world_size() -> int:
    """How many ranks there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


@lru_cache(maxsize=1)
def _own_group(of: int) -> dist.ProcessGroup:
    """Make a group of all ranks beside the one on which DDP sends gradients at the same time."""
    found = dist.new_group()
    assert isinstance(found, dist.ProcessGroup)
    return found
