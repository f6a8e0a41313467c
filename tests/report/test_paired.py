"""Paired comparison: no false alarms, and differences that matter are seen."""

import numpy as np
import pytest

from maniple.report.paired import CANNOT_TELL, IMPROVED, REGRESSED, compare, mid_p


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("luck", [0.0, 0.7])
def test_equal_policies_are_rarely_told_apart(rate, luck):
    """At most 5 % of 10,000 pairs, whether the same episodes are hard for both or not."""
    rng = np.random.default_rng(int(100 * rate + 10 * luck))
    verdicts = [compare(*pair(rng, rate, rate, luck)).verdict for _ in range(10_000)]
    assert np.mean([verdict != CANNOT_TELL for verdict in verdicts]) <= 0.05


@pytest.mark.parametrize(("before", "after"), [(0.2, 0.4), (0.5, 0.7), (0.7, 0.9)])
def test_twenty_points_are_seen(before, after):
    """In 80 % of comparisons over 100 pairs."""
    rng = np.random.default_rng(1)
    better = [compare(*pair(rng, before, after, 0.3)).verdict for _ in range(1000)]
    assert np.mean([verdict == IMPROVED for verdict in better]) >= 0.8
    worse = [compare(*pair(rng, after, before, 0.3)).verdict for _ in range(1000)]
    assert np.mean([verdict == REGRESSED for verdict in worse]) >= 0.8


def pair(rng, before, after, luck, count=100):
    """Outcomes of two policies; with `luck` as the part of episodes that are alike for both."""
    shared, is_shared = rng.random(count), rng.random(count) < luck
    first = np.where(is_shared, shared, rng.random(count)) < before
    second = np.where(is_shared, shared, rng.random(count)) < after
    return first, second


def test_the_numbers():
    result = compare([1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 1, 1, 1, 1])
    assert (result.gained, result.lost, result.of) == (6, 1, 8) and result.gap == 5 / 8
    assert result.gap_ci95[0] < result.gap < result.gap_ci95[1]
    assert mid_p(0, 0) == 1.0 and mid_p(3, 3) == 1.0
    assert mid_p(6, 0) == pytest.approx(2 * 0.5 / 64)
    assert compare([0.1, 0.2], [0.1, 0.2]).verdict == CANNOT_TELL
