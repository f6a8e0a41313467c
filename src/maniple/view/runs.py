"""Follow what a run writes while it trains."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maniple.core.errors import ManipleError
from maniple.run.folder import CONFIG, RunFolder
from maniple.run.log import read_lines

LOOK_S = 2.0
"""Seconds between two looks at a folder."""
FIRST = ("success", "return")
"""Metrics that are drawn by themselves; others are chosen."""


def runs_in(folder: Path) -> list[Path]:
    """Return the runs right inside a folder, the newest first."""
    found = [path.parent for path in folder.glob(f"*/{CONFIG}")]
    return sorted(found, key=lambda path: _changed(path / CONFIG), reverse=True)


def curves(path: Path) -> dict[str, list[tuple[float, float]]]:
    """Read every metric of a run as points (step, value); nothing where there is none yet."""
    file = RunFolder(path).metrics
    if not file.is_file():
        return {}
    found: dict[str, list[tuple[float, float]]] = {}
    for line in read_lines(file):
        for name, value in line.items():
            if name != "step" and isinstance(value, int | float):
                found.setdefault(name, []).append((float(line["step"]), float(value)))
    return found


class CheckpointWatch:
    """Looks for newer checkpoints on a thread of its own.

    Args:
        path: The run's folder.
        on_new: Called on that thread with a whole checkpoint and what acting needs of it.
        newest: Name of the checkpoint that is known already.
    """

    def __init__(
        self, path: Path, on_new: Callable[[Any, dict[str, Any]], None], newest: str | None = None
    ) -> None:
        self._path, self._on_new, self._newest = path, on_new, newest
        self._names: list[str] = []
        self.trouble = ""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="maniple-checkpoints", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._end.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._end.wait(LOOK_S):
            try:
                self._look()
                self.trouble = ""
            except (ManipleError, OSError) as error:
                # The run may be removing what we have just found: the next look tells.
                self.trouble = str(error)

    def _look(self) -> None:
        from maniple.run.checkpoint import find
        from maniple.run.store import acting_weights

        folder = RunFolder(self._path).checkpoints
        # Checking a checkpoint means reading it: not unless there is another name.
        names = sorted(p.name for p in folder.glob("*-*") if not p.name.startswith("."))
        if not names or names == self._names:
            return
        found = find(self._path, best=False)
        if found.path.name != self._newest:
            self._on_new(found, acting_weights(found))
            self._newest = found.path.name
        self._names = names


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
