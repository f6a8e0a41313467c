"""Compare two policies on the same episodes, and say no more than the episodes show."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np

IMPROVED, REGRESSED, CANNOT_TELL = "IMPROVED", "REGRESSED", "CANNOT TELL"
LEVEL = 0.047
"""Below which a difference counts. Two equal policies are then told apart in at most 5 % of
comparisons: with 100 episodes the mid-p test errs in up to 5.1 % at a level of 0.05."""


class Comparison(NamedTuple):
    """What changed from one policy to another."""

    verdict: str
    gained: int
    """Episodes that only the second one solved, or in which it earned more."""
    lost: int
    """Episodes that only the first one solved, or in which it earned more."""
    of: int
    p: float
    """How likely such a difference is between two equal policies."""
    gap: float
    """Rate of the second minus that of the first."""
    gap_ci95: tuple[float, float]


def compare(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """Compare outcomes (success as 0 and 1, or returns), number k of both from the same seed.

    Only episodes that ended differently tell anything (McNemar's test). The mid-p form is used:
    the exact one needs more episodes to see the same difference.
    """
    first, second = np.asarray(before, float), np.asarray(after, float)
    assert first.shape == second.shape and first.ndim == 1
    gained, lost = int((second > first).sum()), int((second < first).sum())
    p = mid_p(gained, lost)
    verdict = CANNOT_TELL
    if p < LEVEL:
        verdict = IMPROVED if gained > lost else REGRESSED
    return Comparison(
        verdict, gained, lost, len(first), p, (gained - lost) / len(first),
        _interval(gained, lost, len(first)),
    )  # fmt: skip


def mid_p(gained: int, lost: int) -> float:
    """Two-sided mid-p of so many wins and losses, if both were equally likely."""
    count, fewer = gained + lost, min(gained, lost)
    if gained == lost:
        return 1.0
    ways = [comb(count, k) for k in range(fewer + 1)]
    return min(1.0, (2 * sum(ways[:-1]) + ways[-1]) / 2**count)


def _interval(gained: int, lost: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Interval of the difference of two paired rates, with half an episode added to each side."""
    b, c, n = gained + 0.5, lost + 0.5, of + 1.0
    gap = (b - c) / n
    half = z * float(np.sqrt(max(b + c - (b - c) ** 2 / n, 0.0))) / n
    return max(-1.0, gap - half), min(1.0, gap + half)
