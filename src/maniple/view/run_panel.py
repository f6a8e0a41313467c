"""The part of the page that follows a training run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.errors import ManipleError
from maniple.view.controls import Do, on
from maniple.view.plots import Curve
from maniple.view.runs import FIRST, Curves, MetricsFollower, runs_in

NONE = "(no runs)"


class RunPanel:
    """Curves of a run that is chosen among those of a folder."""

    def __init__(self, gui: Any, folder: Path, do: Do, chosen: Path | None = None) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}
        self._followed: tuple[Path, MetricsFollower] | None = None
        if chosen is not None:
            self._paths[chosen.name] = chosen
        self._find()
        names = tuple(self._paths) or (NONE,)
        self.run = gui.add_dropdown("Run", names, initial_value=names[0])
        self.state = gui.add_markdown("")
        self._first = [Curve(gui, name) for name in FIRST]
        self.metric = gui.add_dropdown("More", ("-",))
        self._more = Curve(gui, "-")
        on(self.run.on_update, do, self.show)
        on(self.metric.on_update, do, self.show)
        self.show()

    def show(self) -> None:
        """Read the run again, and draw it."""
        self._find()
        names = tuple(self._paths) or (NONE,)
        if tuple(self.run.options) != names:
            self.run.options = names
        path = self._paths.get(str(self.run.value))
        text = f"No runs in `{self._folder}` yet." if path is None else "No metrics yet."
        try:
            found = self._follower(path).look() if path is not None else {}
        except (ManipleError, OSError) as error:
            found, text = {}, f"It cannot be read: {error}"
        self._offer(tuple(found))
        self._draw(found)
        last = max((points[-1][0] for points in found.values()), default=None)
        text = text if last is None else f"Step **{last:,.0f}** · `{path}`"
        if self.state.content != text:
            self.state.content = text

    def _follower(self, path: Path) -> MetricsFollower:
        if self._followed is None or self._followed[0] != path:
            self._followed = (path, MetricsFollower(path))
        return self._followed[1]

    def _draw(self, found: Curves) -> None:
        for curve in self._first:
            curve.visible = len(found.get(curve.name, ())) > 0
            if curve.visible:
                curve.show(curve.name, found[curve.name])
        chosen = str(self.metric.value)
        self._more.visible = chosen in found
        if chosen in found:
            self._more.show(chosen, found[chosen])

    def _offer(self, names: tuple[str, ...]) -> None:
        """Offer the other metrics, those of the episodes and losses before clocks."""
        others = [name for name in names if name not in FIRST]
        others = tuple(sorted(others, key=lambda name: name.startswith("clock"))) or ("-",)
        if tuple(self.metric.options) != others:
            keep = self.metric.value if self.metric.value in others else others[0]
            self.metric.options = others
            self.metric.value = keep

    def _find(self) -> None:
        for path in runs_in(self._folder):
            self._paths.setdefault(path.name, path)
