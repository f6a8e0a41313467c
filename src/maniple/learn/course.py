"""The course of a run: what is due when, what was best, what is told and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.rank import Rank
from maniple.learn.config import TrainConfig
from maniple.learn.evaluate import FIRST_SEED, Evaluation, evaluate
from maniple.learn.make import judge_rows, make_envs, stack_of
from maniple.learn.save import Keeper
from maniple.run.when import Every

Listen = Callable[[int, Mapping[str, float]], None]
Snapshot = tuple[dict[str, NDArray], dict[str, Any]]
"""Arrays, and everything else as JSON."""


class Run(Protocol):
    """What a course looks after."""

    steps: int
    agent: Any
    ring: Any

    def told(self) -> dict[str, float]: ...
    def snapshot(self) -> Snapshot: ...


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    run_dir: Path
    steps: int
    updates: int
    evaluation: Evaluation | None
    """The last one."""
    best: float
    """Best score of any evaluation."""
    train_s: float
    """Wall time without evaluations."""
    wall_s: float


class Course:
    """Evaluates, reports and saves a run when that is due."""

    def __init__(self, config: TrainConfig, run_dir: Path, resume: bool, listen: Listen) -> None:
        self._began = perf_counter()
        self.config = config
        self.keeper = Keeper(config, run_dir, resume, is_first=Rank.here().rank == 0)
        self.last: Evaluation | None = None
        self.best = -np.inf
        self._due = {
            "evaluation": Every(config.eval_period),
            "log": Every(config.log_period),
            "checkpoint": Every(config.checkpoint_period),
        }
        self._listen = listen
        self._judge: Any = None
        self._aside_s = 0.0
        self._mark = (perf_counter(), 0, 0)

    def attend(self, run: Run) -> bool:
        """Do what is due; tell whether the run has reached its goal."""
        if self._due["evaluation"](run.steps):
            self.evaluate(run)
            wanted = self.config.stop_at_success
            if wanted is not None and self.last and self.last.score >= wanted:
                return True
        if self._due["log"](run.steps):
            self.report(run)
        if self._due["checkpoint"](run.steps):
            self.save(run)
        return False

    def finish(self, run: Run) -> Result:
        """Evaluate, report and save a last time, and sum up."""
        if self.last is None or self.config.stop_at_success is None:
            self.evaluate(run)
        else:
            self.report(run)
        self.save(run)
        return Result(
            self.keeper.folder.path, run.steps, run.agent.updates, self.last, float(self.best),
            self._train_s(), perf_counter() - self._began,
        )  # fmt: skip

    def evaluate(self, run: Run) -> None:
        """Play on seeds that training never sees, and keep the best weights."""
        config = self.config
        if config.eval_n_trajs == 0 or not self.keeper.is_first:
            return
        began = perf_counter()
        if self._judge is None:
            self._judge = make_envs(config, judge_rows(config))
        act = lambda seen: run.agent.act(seen, explore=False)  # noqa: E731
        first_seed = FIRST_SEED + config.seed * 1_000_000
        stack = stack_of(config.agent)
        self.last = evaluate(self._judge, act, config.eval_n_trajs, first_seed, stack)
        if self.last.score > self.best:
            self.best = self.last.score
            self.keeper.save_policy(run.steps, run.agent, self.last)
        self._aside_s += perf_counter() - began
        self.report(run, {"success": self.last.success_rate, "return": self.last.return_mean})

    def report(self, run: Run, judged: Mapping[str, float] | None = None) -> None:
        """Tell what is known now, and what an evaluation has just found."""
        now, (then, steps, updates) = perf_counter(), self._mark
        told = run.told() | dict(judged or {})
        told |= {"updates": run.agent.updates, "replay": len(run.ring)}
        elapsed = max(now - then, 1e-9)
        told |= {
            "clock/train_s": self._train_s(),
            "clock/wall_s": now - self._began,
            "clock/steps_per_s": (run.steps - steps) / elapsed,
            "clock/updates_per_s": (run.agent.updates - updates) / elapsed,
        }
        if run.steps > steps:
            self._mark = (now, run.steps, run.agent.updates)
        self.keeper.log.write(run.steps, told)
        self._listen(run.steps, told)

    def save(self, run: Run) -> None:
        """Write everything that going on needs."""
        arrays, state = run.snapshot()
        state["course"] = {
            "best": None if np.isinf(self.best) else self.best,
            "last_due": {name: due.last for name, due in self._due.items()},
        }
        self.keeper.save(run.steps, arrays, state, run.ring)

    def restore(self, ring: Any) -> Snapshot | None:
        """Fill the replay from the newest whole checkpoint and return the rest of it."""
        found = self.keeper.load(ring)
        if found is None:
            return None
        course = found[1]["course"]
        self.best = -np.inf if course["best"] is None else course["best"]
        for name, last in course["last_due"].items():
            self._due[name].last = last
        return found

    def close(self) -> None:
        """Let go of the judge's environments and of the files."""
        if self._judge is not None:
            self._judge.close()
        self.keeper.close()

    def _train_s(self) -> float:
        return perf_counter() - self._began - self._aside_s
