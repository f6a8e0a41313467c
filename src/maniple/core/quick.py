"""Whole-array operations without the set-up cost that a single environment would notice."""

from __future__ import annotations

from math import isfinite

import numpy as np
from numpy.typing import NDArray

# np.clip wraps this ufunc in Python code that costs a single environment 4 us per step.
clip = getattr(np._core.umath, "clip", np.clip)

MANY = 4096
_ZEROS = {char: np.zeros(MANY, char) for char in "efd"}

FEW = 64
"""Up to here plain Python beats numpy, whose code is cold after a physics step."""


def any_true(flags: NDArray[np.bool_]) -> bool:
    """Tell whether any flag is set; a byte search has no set-up cost."""
    return b"\x01" in flags.tobytes()


def all_true(flags: NDArray[np.bool_]) -> bool:
    """Tell whether every flag is set."""
    return b"\x00" not in flags.tobytes()


def all_finite(numbers: NDArray) -> bool:
    """Tell whether a flat array holds neither NaN nor infinity."""
    if numbers.size <= FEW:
        return isfinite(sum(numbers.tolist()))
    return _all_finite(numbers)


@np.errstate(invalid="ignore", over="ignore")
def _all_finite(numbers: NDArray) -> bool:
    """Zero times NaN or infinity is NaN, and a dot product the quickest way to multiply and add."""
    zeros = _ZEROS.get(numbers.dtype.char)
    if zeros is not None and numbers.size <= MANY:
        return numbers.dot(zeros[: numbers.size]) == 0.0
    return isfinite(np.add.reduce(numbers, dtype=np.float64))


def all_within(numbers: NDArray, radius: float) -> bool:
    """Tell whether no number is further from zero than `radius`; NaN is further."""
    if 0 < numbers.size <= FEW:
        # A loop, since all() of a generator takes twice as long.
        for number in numbers.ravel().tolist():
            if not -radius <= number <= radius:
                return False
        return True
    return all_true(np.abs(numbers) <= radius)
