"""Know which behaviour the data supports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from maniple.data.sequence_buffer import SequenceBuffer

LOOKED_AT = 1_000
"""Stretches from which the support is taken."""

USUAL = 1.0
"""Squared distance that data itself has on average: as likely as that costs nothing, or standing
still would be the best of all plans."""


class Support(NamedTuple):
    """A Gaussian of how actions follow one another in the data: a = slope * last + rest."""

    slope: Tensor
    """(action_size,)."""
    spread: Tensor
    """(action_size,): of the rest."""

    def cost(self, last: Tensor, action: Tensor) -> Tensor:
        """Half the squared distance in spreads beyond what is usual, a mean over numbers, (...)."""
        slope, spread = self.slope.to(action.device), self.spread.to(action.device)
        off = ((action - slope * last) / spread).square().mean(-1)
        return 0.5 * (off - USUAL).clamp_min(0.0)


def support_of(replay: SequenceBuffer, source: int | None = None) -> Support:
    """Fit it to consecutive actions of the episodes that are here."""
    starts = replay.starts(2, source)
    chosen = starts[np.linspace(0, len(starts) - 1, min(LOOKED_AT, len(starts))).astype(int)]
    drawn = replay.windows(chosen, 2, 1).action
    action = torch.from_numpy(drawn.reshape(len(drawn), 2, -1))
    last, now = action[:, 0], action[:, 1]
    slope = (last * now).mean(0) / last.square().mean(0).clamp_min(1e-6)
    return Support(slope, (now - slope * last).std(0).clamp_min(0.05))
