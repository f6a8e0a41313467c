"""Keep a run on disk so that it can be evaluated, and resumed exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.learn.config import TrainConfig, kind_of
from maniple.learn.evaluate import Evaluation
from maniple.registry import canonical
from maniple.run.checkpoint import Checkpoint, Checkpoints
from maniple.run.folder import RunFolder, plain
from maniple.run.log import Log
from maniple.run.segments import Replay, Segments

# Settings that a resumed run may change without becoming another run.
FREE = ("max_steps", "max_minutes", "log_period", "eval_period", "eval_n_trajs", "stop_at_success",
        "checkpoint_period", "torch_threads", "device", "workers", "engine", "overlap")  # fmt: skip


class Keeper:
    """Writes and reads what a run leaves behind; ranks other than the first write nothing."""

    def __init__(self, config: TrainConfig, run_dir: Path, resume: bool, is_first: bool) -> None:
        self.folder = RunFolder(run_dir)
        self.shelf = Checkpoints(self.folder.checkpoints)
        self.segments = Segments(self.folder.replay)
        self.is_first = is_first
        described = {"algorithm": kind_of(config.agent), **plain(config)}
        # By whatever spelling a task is named, its run is the same.
        described["task"] = canonical(config.task)
        self._found = self.shelf.latest() if resume else None
        if resume and self._found is None and (torn := self.shelf.complaints()):
            raise BadConfig(
                f"{torn[0]}. {self.shelf.folder} holds no whole checkpoint to go on from; begin "
                "anew in another folder, without --resume."
            )
        if resume and self.folder.is_used:
            _check_same(self.folder.config(), described)
        elif is_first:
            self.folder.create(described)
        step = self._found.step if self._found else (0 if resume else None)
        self.log: Any = Log(self.folder.path, step) if is_first else _Silence()

    def save(
        self, step: int, arrays: dict[str, NDArray], state: dict[str, Any], replay: Replay
    ) -> None:
        """Write a checkpoint that a run can go on from."""
        if not self.is_first:
            return
        files = self.segments.save(replay)
        self.shelf.save(step, arrays, state, files)
        needed = [f for checkpoint in self.shelf.whole() for f in checkpoint.files()]
        self.segments.forget(needed)

    def save_policy(self, step: int, agent: Any, judged: Evaluation | None) -> None:
        """Write what acting needs, as the best so far."""
        about: dict[str, Any] = {}
        if judged is not None:
            rate = judged.success_rate
            about = {"success": None if np.isnan(rate) else rate, "return": judged.return_mean}
        arrays = {f"acting.{name}": array for name, array in agent.weights().items()}
        self.shelf.save(step, arrays, about, kind="best", keep=1)

    def load(self, replay: Replay) -> tuple[dict[str, NDArray], dict[str, Any]] | None:
        """Fill a replay from the newest whole checkpoint, and return the rest of it."""
        if self._found is None:
            return None
        self.segments.load(replay, self._found.files())
        return self._found.arrays(), self._found.state()

    def close(self) -> None:
        """Close the metrics."""
        self.log.close()


class _Silence:
    def write(self, step: int, metrics: Any) -> None:
        """Other ranks say nothing."""

    def close(self) -> None:
        """There is nothing open."""


def acting_weights(checkpoint: Checkpoint) -> dict[str, NDArray]:
    """Pick out of any checkpoint what acting needs."""
    arrays = checkpoint.arrays()
    best = {k.removeprefix("acting."): a for k, a in arrays.items() if k.startswith("acting.")}
    whole = {k.removeprefix("agent."): a for k, a in arrays.items() if k.startswith("agent.")}
    return best or {k: a for k, a in whole.items() if k.startswith(("policy.", "eye."))}


def _check_same(old: dict[str, Any], new: dict[str, Any]) -> None:
    for name in new:
        if name not in FREE and old.get(name) != new[name]:
            raise BadConfig(
                f"This run was begun with {name} = {old.get(name)!r}; it cannot go on with "
                f"{new[name]!r}. Leave that option as it was, or begin another --run-dir."
            )
