"""Whole-array operations without the set-up cost that a single environment would notice."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

try:
    from maniple.core import _quick as compiled
except ImportError:
    # There was no C compiler when the package was installed; 'maniple doctor' says so.
    compiled = None
if os.environ.get("MANIPLE_PLAIN"):
    compiled = None

# np.clip wraps this ufunc in Python code that costs a single environment 4 us per step.
clip = getattr(np._core.umath, "clip", np.clip)  # pyright: ignore[reportAttributeAccessIssue]


def any_true(flags: NDArray[np.bool_]) -> bool:
    """Return whether any flag is set."""
    if compiled is not None and (answer := compiled.any_true(flags)) is not None:
        return answer
    # A byte search has less set-up cost than any numpy reduction.
    return b"\x01" in flags.tobytes()


def all_true(flags: NDArray[np.bool_]) -> bool:
    """Return whether every flag is set."""
    return b"\x00" not in flags.tobytes()


def all_finite(numbers: NDArray) -> bool:
    """Return whether an array holds neither NaN nor infinity."""
    if compiled is not None and (answer := compiled.all_finite(numbers)) is not None:
        return answer
    return all_true(np.isfinite(numbers))


def all_within(numbers: NDArray, radius: float) -> bool:
    """Return whether no number is further from zero than `radius`; NaN is further."""
    if compiled is not None and (answer := compiled.all_within(numbers, radius)) is not None:
        return answer
    # As a double, whatever the numbers are; and the smallest int8 has no absolute value.
    top = np.float64(radius)
    return all_true((numbers >= -top) & (numbers <= top))


def squared_norm(vectors: NDArray) -> NDArray:
    """Squared length of vectors along the last axis.

    Summed term by term: the bits must not depend on how many rows there are.
    """
    squares = vectors * vectors
    total = squares[..., 0]
    for k in range(1, vectors.shape[-1]):
        total = total + squares[..., k]
    return total
