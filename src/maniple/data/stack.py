"""Show an agent the last few pictures as one, while it acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec, Layout


class FrameStack:
    """Keeps the last `count` pictures of every row; one picture is the picture itself."""

    def __init__(self, layout: Layout, count: int) -> None:
        self.count = count
        self._names = [n for n, s in layout.items() if len(s.shape) == 3]
        self._last: dict[str, list[NDArray]] = {}
        self._waiting: NDArray[np.bool_] | None = None

    def begin(self, obs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Start over in all rows."""
        self._last = {name: [obs[name].copy()] * self.count for name in self._names}
        self._waiting = None
        return self._stacked(obs)

    def push(self, obs: Mapping[str, NDArray], ended: NDArray[np.bool_]) -> dict[str, NDArray]:
        """Add the newest; a row that had ended before starts over with it."""
        if self.count > 1:
            for name, frames in self._last.items():
                frames[:] = [*frames[1:], obs[name].copy()]
                if self._waiting is not None and self._waiting.any():
                    for k in range(self.count - 1):
                        frames[k] = frames[k].copy()
                        frames[k][self._waiting] = obs[name][self._waiting]
        self._waiting = ended
        return self._stacked(obs)

    def state(self) -> dict[str, Any]:
        """Return everything that going on needs."""
        frames = self._last if self.count > 1 else {}
        return {"last": frames, "waiting": self._waiting}

    def load(self, state: dict[str, Any], obs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Go on from there; return what the agent sees now."""
        self._last = {name: list(frames) for name, frames in state["last"].items()}
        self._waiting = state["waiting"]
        return self._stacked(obs)

    def _stacked(self, obs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        if self.count == 1:
            return dict(obs)
        joined = {name: np.concatenate(frames, -1) for name, frames in self._last.items()}
        return {**obs, **joined}


def stacked(layout: Layout, count: int) -> Layout:
    """Return the layout that the agent sees."""
    if count == 1:
        return layout
    return Layout(
        {
            n: ArraySpec((*s.shape[:2], s.shape[2] * count), s.dtype, 0, 255)
            if len(s.shape) == 3
            else s
            for n, s in layout.items()
        }
    )
