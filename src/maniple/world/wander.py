"""Go somewhere, then stay around: random actions take over from an explorer in mid-episode."""

from __future__ import annotations

import torch
from torch import Tensor


class Wander:
    """Replaces an explorer's actions from a step on that is drawn for every row.

    An explorer is always on its way, and a model that learns from it alone forgets how calm
    motion looks. Random actions hardly leave the place that the explorer went to.
    """

    def __init__(self, steps: int, part: float, seed: int) -> None:
        """Draw for episodes of `steps` actions.

        Args:
            part: Of the rows in which random actions take over.
        """
        self._steps, self._part = steps, part
        self._rng = torch.Generator().manual_seed(seed)
        self._since: Tensor | None = None
        self._at = 0

    def take_over(self, action: Tensor) -> Tensor:
        """Return what every row does in the next step, (rows, action_size) from -1 to 1."""
        rows = len(action)
        if self._since is None:
            since = torch.rand(rows, generator=self._rng) * self._steps
            stays = torch.rand(rows, generator=self._rng) >= self._part
            self._since = torch.where(stays, torch.inf, since)
        noise = 2 * torch.rand(action.shape, generator=self._rng) - 1
        takes = self._at >= self._since
        self._at += 1
        return torch.where(takes.to(action.device)[:, None], noise.to(action.device), action)
