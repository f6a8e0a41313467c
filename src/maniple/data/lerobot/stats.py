"""Means, spreads and quantiles of a dataset's features, of one episode or of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
PICTURES = 16
"""Pictures of an episode that are looked at, evenly spread: all of them would cost more than
the simulation."""

Stats = dict[str, dict[str, Any]]


def vector_stats(values: NDArray) -> dict[str, Any]:
    """Describe (rows,) or (rows, n)."""
    values = np.asarray(values, np.float64).reshape(len(values), -1)
    return _describe(values, len(values))


def picture_stats(frames: NDArray[np.uint8]) -> dict[str, Any]:
    """Describe each colour of (frames, height, width, 3), from 0 to 1, shaped (3, 1, 1)."""
    chosen = np.unique(np.linspace(0, len(frames) - 1, PICTURES).astype(int))
    summary = _describe(frames[chosen].reshape(-1, 3) / 255.0, len(chosen))
    return {k: v if k == "count" else [[[x]] for x in v] for k, v in summary.items()}


def pooled(parts: list[Stats]) -> Stats:
    """Describe several episodes together; their quantiles are averaged, as LeRobot does."""
    if not parts:
        return {}
    return {key: _pool([part[key] for part in parts]) for key in parts[0]}


def flat(stats: Stats) -> dict[str, Any]:
    """Name the stats of an episode as its columns are: 'stats/action/mean'."""
    return {
        f"stats/{key}/{name}": value
        for key, summary in stats.items()
        for name, value in summary.items()
    }


def unflat(row: Mapping[str, Any]) -> Stats:
    """Take an episode's stats out of its row of facts."""
    stats: Stats = {}
    for name, value in row.items():
        if name.startswith("stats/"):
            key, _, what = name.removeprefix("stats/").rpartition("/")
            stats.setdefault(key, {})[what] = value
    return stats


def _describe(values: NDArray[np.float64], count: int) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "min": values.min(0).tolist(),
        "max": values.max(0).tolist(),
        "mean": values.mean(0).tolist(),
        "std": values.std(0).tolist(),
        "count": [count],
    }
    found = np.quantile(values, list(QUANTILES.values()), axis=0)
    return summary | {name: q.tolist() for name, q in zip(QUANTILES, found, strict=True)}


def _pool(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge two or more; the spread is that of all rows, not the mean of the spreads."""
    get = lambda name: np.array([part[name] for part in parts], np.float64)  # noqa: E731
    mean, std = get("mean"), get("std")
    counts = get("count").reshape(-1, *[1] * (mean.ndim - 1))
    weights = counts / counts.sum()
    centre = (weights * mean).sum(0)
    spread = np.sqrt((weights * (std**2 + (mean - centre) ** 2)).sum(0))
    summary: dict[str, Any] = {
        "min": get("min").min(0).tolist(),
        "max": get("max").max(0).tolist(),
        "mean": centre.tolist(),
        "std": spread.tolist(),
        "count": [int(counts.sum())],
    }
    return summary | {name: (weights * get(name)).sum(0).tolist() for name in QUANTILES}
