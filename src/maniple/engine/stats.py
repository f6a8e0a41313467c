"""Remember how long the last steps took, as percentiles."""

from __future__ import annotations

from collections import deque

import numpy as np

KEPT = 4096


class Times:
    """The last few thousand durations of one kind."""

    def __init__(self) -> None:
        self._kept: deque[float] = deque(maxlen=KEPT)
        self.add = self._kept.append
        """Note one duration, in seconds."""

    def summary_ms(self) -> dict[str, float]:
        """Percentiles in milliseconds; zeros before anything was noted."""
        if not self._kept:
            return {"p50": 0.0, "p90": 0.0, "p99": 0.0}
        p50, p90, p99 = np.percentile(self._kept, (50, 90, 99)) * 1e3
        return {"p50": float(p50), "p90": float(p90), "p99": float(p99)}
