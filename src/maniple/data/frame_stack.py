"""Show an agent the last few pictures as one, while it acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.faults import waiting_after
from maniple.core.spec import ArraySpec, Layout


class FrameStack:
    """Keeps the last `count` pictures of every row; one picture is the picture itself."""

    def __init__(self, layout: Layout, count: int) -> None:
        self.count = count
        self._names = [n for n, s in layout.items() if s.image is not None]
        self._last: dict[str, list[NDArray]] = {}
        self._waiting: NDArray[np.bool_] | None = None

    def begin(
        self, obs: Mapping[str, NDArray], rows: NDArray[np.bool_] | None = None
    ) -> dict[str, NDArray]:
        """Start over in rows (None: all)."""
        if rows is None:
            self._last = {name: [obs[name].copy()] * self.count for name in self._names}
            self._waiting = None
        else:
            self._fill(obs, rows)
            if self._waiting is not None:
                self._waiting = self._waiting & ~rows
        return self._stacked(obs)

    def push(
        self,
        obs: Mapping[str, NDArray],
        ended: NDArray[np.bool_],
        lost: NDArray[np.bool_] | None = None,
    ) -> dict[str, NDArray]:
        """Add the newest; a row that had ended before starts over with it."""
        if self.count > 1:
            for name, frames in self._last.items():
                frames[:] = [*frames[1:], obs[name].copy()]
            if self._waiting is not None and self._waiting.any():
                self._fill(obs, self._waiting)
        self._waiting = waiting_after(ended, self._waiting, lost)
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

    def _fill(self, obs: Mapping[str, NDArray], rows: NDArray[np.bool_]) -> None:
        """Show rows nothing but their newest picture."""
        for name, frames in self._last.items() if self.count > 1 else ():
            for k in range(self.count):
                frames[k] = frames[k].copy()
                frames[k][rows] = obs[name][rows]

    def _stacked(self, obs: Mapping[str, NDArray]) -> dict[str, NDArray]:
        if self.count == 1:
            return dict(obs)
        joined = {name: join_pictures(frames) for name, frames in self._last.items()}
        return {**obs, **joined}


def join_pictures(frames: Sequence[NDArray]) -> NDArray:
    """Join pictures (rows, h, w[, channels]) as further channels."""
    join = np.concatenate if frames[0].ndim == 4 else np.stack
    return join(frames, -1)


def stacked(layout: Layout, count: int) -> Layout:
    """Return the layout that the agent sees."""
    if count == 1:
        return layout
    return Layout({n: _stacked_spec(s, count) if s.image else s for n, s in layout.items()})


def _stacked_spec(spec: ArraySpec, count: int) -> ArraySpec:
    low, high = (join_pictures([bound[None]] * count)[0] for bound in spec.bounds())
    return ArraySpec(low.shape, spec.dtype, low, high, spec.image, spec.meaning)
