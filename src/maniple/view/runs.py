"""Follow what a run writes while it trains."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maniple.core.checked_file import check_file
from maniple.core.errors import ManipleError
from maniple.run.folder import CONFIG, RunFolder
from maniple.run.log import read_line

LOOK_S = 2.0
"""Seconds between two looks at a folder."""
TAIL_BYTES = 512
"""Bytes by which a file is known again."""
FIRST = ("success", "return")
"""Metrics that are drawn by themselves; others are chosen."""


def runs_in(folder: Path) -> list[Path]:
    """Return the runs right inside a folder, the newest first."""
    found = [path.parent for path in folder.glob(f"*/{CONFIG}")]
    return sorted(found, key=lambda path: _changed(path / CONFIG), reverse=True)


Curves = dict[str, list[tuple[float, float]]]


class MetricsFollower:
    """Every metric of a run as points (step, value), of which each look reads only what is new.

    A run that goes on from a checkpoint cuts its metrics back: then all is read again.
    """

    def __init__(self, path: Path) -> None:
        self._file = RunFolder(path).metrics
        self._forget()

    def look(self) -> Curves:
        """Read on; nothing where there is nothing yet."""
        if not self._file.is_file():
            self._forget()
            return self._found
        check_file(self._file)
        with self._file.open("rb") as file:
            if not self._goes_on(file):
                self._forget()
            file.seek(self._read)
            new = file.read()
        # A line that is being written is for the next look.
        whole = new[: new.rfind(b"\n") + 1]
        for line in whole.splitlines():
            self._add(read_line(line) or {})
        self._read += len(whole)
        self._tail = (self._tail + whole)[-TAIL_BYTES:]
        return self._found

    def _goes_on(self, file: Any) -> bool:
        """Tell whether what was read last still stands where it stood."""
        file.seek(self._read - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _forget(self) -> None:
        self._found: Curves = {}
        self._read, self._tail = 0, b""

    def _add(self, line: dict[str, Any]) -> None:
        for name, value in line.items():
            if name != "step" and isinstance(value, int | float):
                self._found.setdefault(name, []).append((float(line["step"]), float(value)))


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

        folder = RunFolder(self._path).checkpoints
        # Checking a checkpoint means reading it: not unless there is another name.
        names = sorted(p.name for p in folder.glob("*-*") if not p.name.startswith("."))
        if not names or names == self._names:
            return
        found = find(self._path, best=False)
        if found.path.name != self._newest:
            self._on_new(found, found.acting_weights())
            self._newest = found.path.name
        self._names = names


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
