"""Remember how long the last steps took, and tell it as percentiles."""

from __future__ import annotations

import numpy as np

KEPT = 4096


class Times:
    """The last few thousand durations of one kind."""

    def __init__(self) -> None:
        self._ring = np.zeros(KEPT)
        self.count = 0

    def add(self, seconds: float) -> None:
        """Note one duration."""
        self._ring[self.count % KEPT] = seconds
        self.count += 1

    def summary_ms(self) -> dict[str, float]:
        """Percentiles in milliseconds; zeros before anything was noted."""
        kept = self._ring[: min(self.count, KEPT)]
        if not len(kept):
            return {"p50": 0.0, "p90": 0.0, "p99": 0.0}
        p50, p90, p99 = np.percentile(kept, (50, 90, 99)) * 1e3
        return {"p50": float(p50), "p90": float(p90), "p99": float(p99)}
