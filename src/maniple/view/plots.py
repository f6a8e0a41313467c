"""Curves on the page."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COLOURS = ("#2563eb", "#ea580c", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#a16207", "#64748b",
           "#db2777", "#4d7c0f")  # fmt: skip
STEPS = 250
"""Steps that a live plot reaches back."""
AXES = (
    {"font": "11px sans-serif", "size": 28, "space": 60},
    {"font": "11px sans-serif", "size": 46, "space": 26},
)
PADDING = (8, 14, 0, 0)


class LivePlot:
    """The last steps of a few named numbers."""

    def __init__(self, gui: Any, title: str, height: int = 190) -> None:
        self._gui, self._title, self._height = gui, title, height
        self._names: tuple[str, ...] = ()
        self._values: deque[tuple[float, ...]] = deque(maxlen=STEPS)
        self._handle: Any = None
        # A plot cannot change its number of curves: a folder keeps its place.
        self._folder = gui.add_folder(title)

    def add(self, numbers: Mapping[str, float]) -> None:
        """Add a step; other names than before begin a new plot."""
        if tuple(numbers) != self._names:
            self._names = tuple(numbers)
            self._values.clear()
            self._make()
        self._values.append(tuple(numbers.values()))

    def clear(self) -> None:
        """Begin anew, as an episode does."""
        self._values.clear()

    def show(self) -> None:
        """Send what was added."""
        if self._handle is not None and len(self._values) > 1:
            self._handle.data = self._data()

    def _data(self) -> tuple[np.ndarray, ...]:
        rows = np.array(self._values, np.float64).reshape(-1, max(1, len(self._names)))
        return (np.arange(len(rows), dtype=np.float64), *np.ascontiguousarray(rows.T))

    def _make(self) -> None:
        if self._handle is not None:
            self._handle.remove()
        start = tuple(np.zeros(2) if k else np.arange(2.0) for k in range(len(self._names) + 1))
        with self._folder:
            self._handle = self._gui.add_uplot(
                start, series_of("step", self._names), height=self._height,
                scales={"x": {"time": False, "auto": True}, "y": {"auto": True}},
                axes=AXES, padding=PADDING, legend={"show": True, "live": False},
            )  # fmt: skip


class Curve:
    """One metric over the steps of a run."""

    def __init__(self, gui: Any, name: str, height: int = 170) -> None:
        self.name = name
        self._handle = gui.add_uplot(
            (np.arange(2.0), np.zeros(2)), series_of("step", (name,)), title=None, height=height,
            scales={"x": {"time": False, "auto": True}, "y": {"auto": True}},
            axes=AXES, padding=PADDING, legend={"show": True, "live": False},
        )  # fmt: skip

    def show(self, name: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw these points, and call them so."""
        x, y = np.array(points, np.float64).reshape(-1, 2).T
        if name != self.name:
            self.name = name
            self._handle.series = series_of("step", (name,))
        self._handle.data = (np.ascontiguousarray(x), np.ascontiguousarray(y))

    @property
    def visible(self) -> bool:
        """Whether it is on the page."""
        return bool(self._handle.visible)

    @visible.setter
    def visible(self, value: bool) -> None:
        self._handle.visible = value


def series_of(x: str, names: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Describe the curves of a plot to uPlot."""
    lines = [
        {
            "label": name,
            "stroke": COLOURS[k % len(COLOURS)],
            "width": 1.6,
            "points": {"show": False},
        }
        for k, name in enumerate(names)
    ]
    return ({"label": x}, *lines)
