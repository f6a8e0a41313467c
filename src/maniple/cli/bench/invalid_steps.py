"""Count the actions of a benchmark that the arm could not carry out."""

from __future__ import annotations

from typing import Any

import numpy as np


class InvalidSteps:
    """Adds up `invalid_actions`, which begins at 0 with every episode."""

    def __init__(self) -> None:
        self.count: int | None = None
        """None: the task has no actions that can be invalid."""
        self._before = np.zeros(1, np.int64)

    def see(self, info: dict[str, Any]) -> None:
        """Take the infos of one call."""
        if "invalid_actions" not in info:
            return
        now = np.asarray(info["invalid_actions"])
        more = np.where(now >= self._before, now - self._before, now)
        self.count = (self.count or 0) + int(more.sum())
        self._before = now.copy()
