"""Draw random actions within the bounds of an action's spec."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec

UNBOUNDED = 1e6
"""Larger bounds than this are none: random numbers are then drawn from a small range instead."""
SMALL = 0.1


def random_actions(
    spec: ArraySpec, lead: int | tuple[int, ...], rng: np.random.Generator
) -> NDArray:
    """Draw uniformly, (*lead, ...): one number for rows, or (rows, chunk)."""
    low, high = spec.bounds()
    shape = (*((lead,) if isinstance(lead, int) else lead), *spec.shape)
    least = np.where(low < -UNBOUNDED, -SMALL, low)
    most = np.where(high > UNBOUNDED, SMALL, high)
    return np.clip(rng.uniform(least, most, shape).astype(spec.dtype), low, high)
