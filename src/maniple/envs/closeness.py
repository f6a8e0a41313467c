"""A reward for being close."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def near(distance_m: NDArray, scale_m: float) -> NDArray:
    """1 at a distance of 0, falling to nearly 0 over a few times the scale."""
    return 1.0 - np.tanh(distance_m / scale_m)
