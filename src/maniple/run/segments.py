"""Store a replay piece by piece: every checkpoint writes only what is new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.run.checkpoint import read_arrays, write_arrays


class Replay(Protocol):
    """What can be stored in pieces."""

    total: int

    def oldest(self) -> int: ...
    def segment(self, since: int) -> dict[str, NDArray]: ...
    def restore(self, segment: dict[str, NDArray], since: int, total: int) -> None: ...


class Segments:
    """Files named after the steps that they hold."""

    def __init__(self, folder: Path, rank: int) -> None:
        # Every rank has a replay of its own.
        self.folder = folder if rank == 0 else folder / f"rank{rank}"
        self._files: list[Path] = []

    def save(self, replay: Replay) -> list[Path]:
        """Write what is new; return all files that together are the replay."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._files = [f for f in self._files if _range(f)[1] >= replay.oldest()]
        # One step again: a reset after a resume marks the last stored step as leading nowhere.
        last = _range(self._files[-1])[1] - 1 if self._files else 0
        since = max(last, replay.oldest(), 0)
        path = self.folder / f"{since:09d}-{replay.total:09d}.safetensors"
        write_arrays(path, replay.segment(since))
        if not (self._files and self._files[-1] == path):
            self._files.append(path)
        return list(self._files)

    def load(self, replay: Replay, files: Sequence[Path]) -> None:
        """Put this rank's pieces back in order."""
        self._files = sorted(f for f in files if _same(f.parent, self.folder))
        if not self._files and replay.total == 0:
            raise BadConfig(f"The checkpoint names no replay in {self.folder}.")
        for file in self._files:
            since, total = _range(file)
            replay.restore(read_arrays(file), since, total)

    def forget(self, needed: Sequence[Path]) -> None:
        """Delete the files that no checkpoint needs any more."""
        wanted = {file.name for file in needed if _same(file.parent, self.folder)}
        for file in self.folder.glob("*.safetensors*"):
            if file.name not in wanted:
                file.unlink(missing_ok=True)


def _same(a: Path, b: Path) -> bool:
    return a.resolve() == b.resolve()


def _range(path: Path) -> tuple[int, int]:
    since, _, total = path.name.partition(".")[0].partition("-")
    return int(since), int(total)
