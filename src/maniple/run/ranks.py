"""Act as one over torchrun's ranks: agree, wait for each other, average gradients.

Every method is a collective: all ranks call it at the same place, or none does.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from maniple.core.errors import ManipleError
from maniple.core.rank import Rank

PATIENCE_S = 600.0
"""Seconds after which a rank that does not answer counts as lost."""


class RankLost(ManipleError, RuntimeError):
    """Another rank ended or hangs: nothing can be decided together any more."""


class Ranks:
    """This process and its peers; alone, every method answers at once."""

    def __init__(self, device: torch.device | str = "cpu", here: Rank | None = None) -> None:
        here = here or Rank.here()
        self.rank, self.world_size = here.rank, here.world_size
        self._device = torch.device(device)
        if self.world_size > 1:
            self._join()

    @property
    def is_main(self) -> bool:
        """Whether this rank writes and prints for all."""
        return self.rank == 0

    def highest(self, number: int) -> int:
        """Return the largest of all ranks' numbers: 0 only if every rank says 0."""
        if self.world_size == 1:
            return number
        with self._together():
            mine = torch.tensor(number, device=self._device)
            dist.all_reduce(mine, dist.ReduceOp.MAX)
            return int(mine)

    def total(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of all ranks' arrays."""
        if self.world_size == 1:
            return numbers
        with self._together():
            mine = torch.tensor(numbers, device=self._device)
            dist.all_reduce(mine)
            return mine.cpu().numpy()

    def average(self, tensors: Sequence[torch.Tensor]) -> None:
        """Replace tensors by their mean over all ranks, in place."""
        if self.world_size == 1:
            return
        with self._together():
            flat = torch.cat([t.reshape(-1) for t in tensors])
            dist.all_reduce(flat)
            flat /= self.world_size
            for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def wait(self) -> None:
        """Go on when every rank is here."""
        self.highest(0)

    def check_equal(self, what: str, arrays: dict[str, NDArray]) -> None:
        """Stop loudly where ranks hold different numbers that must be equal."""
        if self.world_size == 1:
            return
        digest = hashlib.sha256()
        for name in sorted(arrays):
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        mine = int.from_bytes(digest.digest()[:6], "big")
        if (highest := self.highest(mine)) != -self.highest(-mine):
            raise ManipleError(
                f"The ranks have different {what} ({mine:012x} on rank {self.rank}, "
                f"{highest:012x} elsewhere); they must be equal. Start every rank with the same "
                "command and the same version of maniple."
            )

    def close(self) -> None:
        """Leave the group."""
        if self.world_size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def _join(self) -> None:
        """Let Accelerate choose the backend and connect, unless somebody has done so already."""
        from accelerate import PartialState

        if not dist.is_initialized():
            is_cpu = self._device.type == "cpu"
            PartialState(cpu=is_cpu, timeout=timedelta(seconds=PATIENCE_S))

    @contextmanager
    def _together(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if isinstance(error, ManipleError):
                raise
            first = str(error).strip().splitlines()[0][:160] if str(error).strip() else ""
            raise RankLost(
                f"Rank {self.rank} of {self.world_size} lost another rank ({first}). The newest "
                "checkpoint is whole: go on with the same command and --resume."
            ) from error


ALONE = Ranks(here=Rank())
"""For what one rank does by itself, even where there are others."""


def end_rank(code: int) -> None:
    """End this process at once if it is one of several ranks.

    With DDP's reducer still there, gloo's threads abort one process in four at exit ("terminate
    called without an active exception"), after all work was done and saved.
    """
    if Rank.here().world_size > 1 and dist.is_available():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
