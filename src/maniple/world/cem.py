"""Plan with the cross-entropy method, with noise that lasts over the horizon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Cost = Callable[[Tensor], Tensor]
"""Judges plans (B, samples, horizon, action_size): returns (B, samples), lower is better."""


@dataclass(frozen=True)
class CEMConfig:
    """How many plans are tried, and how they are drawn."""

    horizon: int = 12
    samples: int = 96
    iterations: int = 3
    elites: int = 10
    spread: float = 0.9
    shared: float = 0.85
    """Part of the noise that is the same in all steps of a plan; without it plans tremble on the
    spot and never see what is further away."""
    own: float = 0.53
    """Part of the noise that every step has for itself."""
    least_spread: float = 0.05
    takes_best: bool = False
    """Return the best plan instead of the mean of the elites: bolder, and rougher."""


def plan(cost: Cost, mean: Tensor, config: CEMConfig, rng: torch.Generator) -> Tensor:
    """Improve plans (B, horizon, action_size) within -1 and 1; return the improved mean."""
    rows, horizon, size = mean.shape
    spread, boldest = torch.full_like(mean, config.spread), mean
    for _ in range(config.iterations):
        shared = torch.randn(rows, config.samples, 1, size, generator=rng)
        own = torch.randn(rows, config.samples, horizon, size, generator=rng)
        noise = (config.shared * shared + config.own * own).to(mean.device)
        plans = (mean[:, None] + spread[:, None] * noise).clamp(-1, 1)
        # What was best so far is always among them.
        plans[:, 0] = mean
        best = cost(plans).topk(config.elites, dim=1, largest=False).indices
        elite = plans.gather(1, best[:, :, None, None].expand(-1, -1, horizon, size))
        mean, spread = elite.mean(1), elite.std(1).clamp_min(config.least_spread)
        boldest = elite[:, 0]
    return boldest if config.takes_best else mean


def moved_on(mean: Tensor, steps: int = 1) -> Tensor:
    """Shift a plan by the steps that were carried out; what follows is unknown."""
    return torch.cat([mean[:, steps:], torch.zeros_like(mean[:, :steps])], 1)
