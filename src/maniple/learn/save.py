"""Keep a run on disk so that it can be evaluated, and resumed exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.learn.config import TrainConfig, kind_of
from maniple.learn.evaluate import Evaluation
from maniple.run.checkpoint import Checkpoint, Checkpoints
from maniple.run.folder import RunFolder, plain
from maniple.run.log import Log
from maniple.run.segments import Segments
from maniple.run.tree import split, unsplit

if TYPE_CHECKING:
    from maniple.learn.loop import Training

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
        self._found = self.shelf.latest() if resume else None
        if resume and self.folder.is_used:
            _check_same(self.folder.config(), described)
        elif is_first:
            self.folder.create(described)
        step = self._found.step if self._found else (0 if resume else None)
        self.log: Any = Log(self.folder.path, step) if is_first else _Silence()

    def save(self, run: Training) -> None:
        """Write everything that going on needs."""
        if not self.is_first:
            return
        arrays = {f"agent.{name}": a for name, a in run.agent.state().items()}
        state: dict[str, Any] = {
            "steps": run.steps,
            "best": None if np.isinf(run.best) else run.best,
            "meter": run.meter.state(),
            "updates_owed": run._updates_due.owed,
            "last_due": [e.last for e in run._periods()],
            "told": run._told,
            "rng": run.rng.bit_generator.state,
            "ring_rng": run.ring.rng_state(),
            "demo_rng": run.mix.demos.rng_state() if run.mix.demos else None,
            "envs": split(_env_states(run.envs), "env", arrays),
            "frames": split(run.frames.state(), "frames", arrays),
        }
        files = self.segments.save(run.ring)
        self.shelf.save(run.steps, arrays, state, files)
        needed = [f for checkpoint in self.shelf.whole() for f in checkpoint.files()]
        self.segments.forget(needed)

    def save_best(self, run: Training) -> None:
        """Write what acting needs, as the best so far."""
        self.save_policy(run.steps, run.agent, run.last)

    def save_policy(self, step: int, agent: Any, judged: Evaluation | None) -> None:
        """Write what acting needs."""
        about: dict[str, Any] = {}
        if judged is not None:
            about = {"success": _or_none(judged.success_rate), "return": judged.return_mean}
        arrays = {f"acting.{name}": array for name, array in agent.weights().items()}
        self.shelf.save(step, arrays, about, kind="best", keep=1)

    def restore(self, run: Training) -> bool:
        """Bring a fresh run to where the newest whole checkpoint was; False: there is none."""
        if self._found is None:
            return False
        arrays, state = self._found.arrays(), self._found.state()
        taken = {k.removeprefix("agent."): a for k, a in arrays.items() if k.startswith("agent.")}
        run.agent.load_state(taken)
        self.segments.load(run.ring, self._found.files())
        run.steps = state["steps"]
        run.best = -np.inf if state["best"] is None else state["best"]
        run.meter.load(state["meter"])
        run._updates_due.owed = state["updates_owed"]
        for due, last in zip(run._periods(), state["last_due"], strict=True):
            due.last = last
        run._told = state["told"]
        run.rng.bit_generator.state = state["rng"]
        run.ring.set_rng_state(state["ring_rng"])
        if run.mix.demos is not None and state["demo_rng"]:
            run.mix.demos.set_rng_state(state["demo_rng"])
        self._restore_envs(run, unsplit(state["envs"], arrays), unsplit(state["frames"], arrays))
        return True

    def _restore_envs(self, run: Training, envs: Any, frames: Any) -> None:
        """Put every row back into its episode; environments that cannot begin new ones."""
        if envs is None:
            run.reset()
            return
        run.envs.reset(seed=run.config.seed)
        run.envs.set_attr("sim_state", envs)
        run.obs = {name: array[run.ring.head].copy() for name, array in run.ring._obs.items()}
        run.seen = run.frames.load(frames, run.obs)

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


def _env_states(envs: Any) -> list[dict[str, Any]] | None:
    try:
        return list(envs.get_attr("sim_state"))
    except BadConfig:
        # A foreign environment that cannot tell its state: its episodes begin anew.
        return None


def _or_none(number: float) -> float | None:
    return None if np.isnan(number) else number


def _check_same(old: dict[str, Any], new: dict[str, Any]) -> None:
    for name in new:
        if name not in FREE and old.get(name) != new[name]:
            raise BadConfig(
                f"This run was begun with {name} = {old.get(name)!r}; it cannot go on with "
                f"{new[name]!r}. Leave that option as it was, or begin another --run-dir."
            )
