"""Keep what is placed away from where something is already."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def apart(places: NDArray, centre: ArrayLike, least_m: float) -> NDArray:
    """Push places, (rows, 3), straight away from a point until they are this far from it."""
    way = places - np.asarray(centre)
    far = np.sqrt((way**2).sum(axis=1, keepdims=True))
    # A place on the very point has no direction: up.
    way = np.where(far > 1e-9, way, [0.0, 0.0, 1e-9])
    far = np.maximum(far, 1e-9)
    return np.asarray(centre) + way * np.maximum(far, least_m) / far
