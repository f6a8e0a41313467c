"""Tell how unlike anything seen so far a state is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FEATURES = 512
PRIOR = 0.1
"""Weight of not having seen anything."""


class Familiarity:
    """The variance that a Bayesian linear model on random features has left at a state.

    It is what infinitely many heads on these features would disagree by after seeing all states,
    computed exactly: heads that are trained by gradients disagree where dynamics are difficult
    and agree at once on a smooth arm, wherever it has been or not.
    """

    def __init__(self, size: int, fineness: float) -> None:
        """Begin without having seen anything.

        Args:
            size: Numbers of a state.
            fineness: How fast features change with a state: more tells closer states apart and
                generalises less.
        """
        rng = torch.Generator().manual_seed(0)
        ways = torch.randn(size, FEATURES, generator=rng)
        self._ways = ways * fineness / max(size, 1) ** 0.5
        self._phases = 2 * torch.pi * torch.rand(FEATURES, generator=rng)
        self._seen = torch.zeros(FEATURES, FEATURES)
        self._left: Tensor | None = None

    def add(self, states: Tensor) -> None:
        """Note states that were visited, (B, size), scaled to a spread of about 1."""
        features = self._features(states.cpu())
        self._seen += features.T @ features
        self._left = None

    def unknown(self, states: Tensor) -> Tensor:
        """How unfamiliar states are: 1 where nothing like them was seen, down to 0, (B,)."""
        left = self._left
        if left is None:
            grown = self._seen / PRIOR + torch.eye(FEATURES)
            left = self._left = torch.linalg.inv(grown).to(states.device)
        features = self._features(states)
        return ((features @ left) * features).sum(-1).clamp_min(1e-6)

    def _features(self, states: Tensor) -> Tensor:
        angles = states @ self._ways.to(states.device) + self._phases.to(states.device)
        return (2 / FEATURES) ** 0.5 * torch.cos(angles)

    def state(self) -> dict[str, NDArray]:
        """Return what was seen."""
        return {"seen": self._seen.numpy().copy()}

    def load_state(self, state: Mapping[str, NDArray]) -> None:
        """Go on from there."""
        self._seen, self._left = torch.from_numpy(np.array(state["seen"])), None
