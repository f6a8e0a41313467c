"""Keep a run on disk so that it can be evaluated, and resumed exactly."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.run.checkpoint import Checkpoints
from maniple.run.folder import Names, RunFolder
from maniple.run.lock import RunLock
from maniple.run.log import Log
from maniple.run.ranks import Ranks
from maniple.run.segments import Replay, Segments


class Store:
    """Writes and reads what a run leaves behind; rank 0 writes what all ranks share."""

    def __init__(
        self,
        path: Path,
        settings: Mapping[str, Any],
        resume: bool,
        ranks: Ranks,
        free: Collection[str] = (),
        names: Names | None = None,
        keep: int = 2,
    ) -> None:
        """Look at the folder without writing to it.

        Args:
            settings: The resolved config as plain lists, tables and numbers.
            resume: Go on with the run that is there.
            free: Settings that a resumed run may change without becoming another run.
            names: What the files and folders inside are called.
            keep: Checkpoints that stay; older ones are removed.
        """
        self.folder = RunFolder(path, names)
        self.checkpoints = Checkpoints(self.folder.checkpoints, keep, self.folder.names)
        self._settings, self._resume, self._ranks = dict(settings), resume, ranks
        self._segments = Segments(self.folder.replay, ranks.rank)
        self._log: Log | None = None
        self._lock: RunLock | None = None
        self._found, torn = self.checkpoints.latest_and_torn() if resume else (None, [])
        if self._found is None and torn:
            raise BadConfig(
                f"{torn[0]}. {self.checkpoints.folder} holds no whole checkpoint to go on from; "
                "begin anew in another folder, without --resume."
            )
        if self._found is not None:
            self._found.check(ranks)
        if resume and self.folder.is_used:
            _check_same(self.folder.config(), self._settings, free)
        else:
            self.folder.check_free()

    def open(self) -> None:
        """Take the folder for this run, and make it where there is none."""
        # Not before every rank has looked at the folder as it was.
        self._ranks.wait()
        if not self._ranks.is_main:
            return
        with self._in_words():
            self._lock = RunLock(self.folder.path)
            if not (self._resume and self.folder.is_used):
                self.folder.create(self._settings)

    def begin(self) -> None:
        """Write the settings of a run that truly goes on, and cut its metrics back to there."""
        if not self._ranks.is_main:
            return
        step = self._found.step if self._found else (0 if self._resume else None)
        with self._in_words():
            self.folder.write_config(self._settings)
            self._log = Log(self.folder, step, self._settings)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BadConfig(
                f"The run folder {self.folder.path} cannot be written ({error.strerror}). Name "
                "another --run-dir."
            ) from error

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Append metrics to every sink."""
        if self._log is not None:
            self._log.write(step, metrics)

    def save(self, step: int, state: dict[str, Any], replay: Replay | None) -> None:
        """Write a checkpoint that a run can go on from; every rank adds its own part."""
        write = (lambda: self._segments.save(replay)) if replay is not None else list
        self.checkpoints.save(step, state, write, ranks=self._ranks)
        # Rank 0 has removed old checkpoints: not before that may the others look at what is left.
        self._ranks.wait()
        needed = [f for checkpoint in self.checkpoints.whole() for f in checkpoint.files()]
        self._segments.forget(needed)

    def save_policy(
        self, step: int, weights: Mapping[str, NDArray], scores: Mapping[str, float]
    ) -> None:
        """Write what acting needs, as the best so far."""
        if not self._ranks.is_main:
            return
        # JSON has no NaN: a task without success has no rate.
        about = {name: value if isfinite(value) else None for name, value in scores.items()}
        self.checkpoints.save(step, {"acting": dict(weights), **about}, kind="best")

    def load(self, replay: Replay | None) -> dict[str, Any] | None:
        """Fill the replay from the newest whole checkpoint; return this rank's part of the rest."""
        if self._found is None:
            return None
        self._ranks.check_equal("checkpoints", {str(self._found.path): self._found.hash()})
        state = self._found.state(self._ranks)
        if replay is not None:
            self._segments.load(replay, self._found.files())
        return state

    def close(self) -> None:
        """Close the metrics."""
        if self._log is not None:
            self._log.close()
        if self._lock is not None:
            self._lock.close()


def _check_same(
    old: dict[str, Any], new: dict[str, Any], free: Collection[str], at: str = ""
) -> None:
    """Refuse a setting that differs; one that the old run did not know yet was at its default."""
    for key in new.keys() & old.keys():
        name, before, now = f"{at}{key}", old[key], new[key]
        if isinstance(before, dict) and isinstance(now, dict):
            _check_same(before, now, free, f"{name}.")
        elif before != now and name not in free:
            raise BadConfig(
                f"This run was begun with {name} = {before!r}; it cannot go on with {now!r}. Leave "
                "that option as it was, or begin another --run-dir."
            )
