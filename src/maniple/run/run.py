"""Drive a learner: restore it, say whether to go on, evaluate, log and save when that is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from maniple.core.errors import BadConfig
from maniple.run.config import RunConfig, Schedule
from maniple.run.evaluation import Evaluation, Evaluator
from maniple.run.learner import Learner, Part
from maniple.run.ranks import Ranks
from maniple.run.stop import REASONS, Stop
from maniple.run.store import Store
from maniple.run.when import Every

Listen = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    run_dir: Path
    steps: int
    updates: int
    evaluation: Evaluation | None
    """The last one; of the final weights."""
    best: float
    """Best score of any evaluation."""
    train_s: float
    """Wall time without evaluations."""
    wall_s: float
    stopped_by: str
    """steps, updates, minutes, success, or asked."""


class Run:
    """Everything around a learner.

    with run:
        run.start(learner, collector=collector)
        while run.goes_on():
            ...
            run.tick()
        return run.finish()
    """

    def __init__(
        self,
        config: RunConfig,
        schedule: Schedule,
        store: Store,
        ranks: Ranks,
        evaluator: Evaluator | None,
        listen: Listen,
        stop: Stop | None,
        threads: int,
    ) -> None:
        """Prepare a run; nothing is written before `start`.

        Args:
            store: Where it is kept.
            evaluator: Plays the policy on seeds that training never sees; None: no evaluation.
            listen: Called when the run has started, then with every report; on every rank.
            stop: Ends the run; None: as the config says.
            threads: Of torch. Fixed: sums come out differently with another number.
        """
        self._began = perf_counter()
        self.config, self.store, self.ranks = config, store, ranks
        self.stop = stop or Stop(config.max_steps, config.max_updates, config.max_minutes)
        self.stopped_by = ""
        self.last: Evaluation | None = None
        self.best = -np.inf
        self._evaluator, self._listen = evaluator, listen
        self._threads = threads
        self._due = {
            "evaluation": Every(schedule.eval_period),
            "log": Every(schedule.log_period),
            "checkpoint": Every(schedule.checkpoint_period),
        }
        self._evaluated_updates = -1
        self._evaluation_s = 0.0
        self._mark = (0.0, 0, 0)
        self._speed = {"clock/steps_per_s": 0.0, "clock/updates_per_s": 0.0}

    def start(self, learner: Learner, **parts: Part) -> bool:
        """Open the folder; go on from its newest checkpoint if the run is resumed.

        Returns:
            Whether there was a checkpoint: then the learner and all parts are where they were.
        """
        self.learner, self._parts = learner, {"learner": learner, **parts}
        self.store.open()
        found = self.store.load(learner.replay)
        if found is not None:
            self._restore(found)
        # Not before a checkpoint that does not fit was refused.
        self.store.begin()
        torch.set_num_threads(self._threads)
        self.ranks.check_equal("weights", learner.weights())
        counters = learner.counters()
        self._mark = (self._train_s(), counters.steps, counters.updates)
        self.stop.begin()
        self._listen(counters.steps, {"updates": counters.updates, "replay": counters.replay})
        return found is not None

    def goes_on(self) -> bool:
        """Tell whether to take another step; all ranks give the same answer."""
        counters = self.learner.counters()
        reason = self.stop.reason(counters.steps, counters.updates)
        self.stopped_by = REASONS[self.ranks.highest(REASONS.index(reason))]
        return not self.stopped_by

    def tick(self) -> None:
        """Do what is due after a step."""
        steps = self.learner.counters().steps
        if self._due["evaluation"](steps):
            self._evaluate()
            wanted = self.config.stop_at_success
            if wanted is not None and self.last and self.last.success_rate >= wanted:
                self.stop.succeed()
                return
        if self._due["log"](steps):
            self._report()
        if self._due["checkpoint"](steps):
            self._save()

    def finish(self) -> Result:
        """Save, evaluate the final weights, report and save again, and sum up."""
        counters = self.learner.counters()
        # First of all: whoever asked us to stop may not wait for an evaluation.
        self._save()
        if self._evaluator is None or self._evaluated_updates == counters.updates:
            self._report(self._scores())
        else:
            self._evaluate()
        self._save()
        return Result(
            self.store.folder.path, counters.steps, counters.updates, self.last, float(self.best),
            self._train_s(), perf_counter() - self._began, self.stopped_by,
        )  # fmt: skip

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the evaluation's environments and of the files."""
        if self._evaluator is not None:
            self._evaluator.close()
        self.store.close()

    def _evaluate(self) -> None:
        """Play on seeds that training never sees, and keep the best weights."""
        if self._evaluator is None:
            return
        began, counters = perf_counter(), self.learner.counters()
        self.last = self._evaluator(lambda obs: self.learner.act(obs, explore=False))
        self._evaluated_updates = counters.updates
        if self.last.successes is None and self.config.stop_at_success is not None:
            raise BadConfig(
                f"{self.config.task} does not say what success is: leave --stop-at-success out."
            )
        if self.last.score > self.best:
            self.best = self.last.score
            self.store.save_policy(counters.steps, self.learner.weights(), self._scores())
        self._evaluation_s += perf_counter() - began
        self._report(self._scores())

    def _scores(self) -> dict[str, float]:
        if self.last is None:
            return {}
        return {"success": self.last.success_rate, "return": self.last.return_mean}

    def _report(self, scores: Mapping[str, float] | None = None) -> None:
        """Log what is known now, and what an evaluation has just found."""
        steps, updates, replay = self.learner.counters()
        self._measure_speed(steps, updates)
        metrics: dict[str, float] = {}
        # The learner's numbers last: they stand for the whole.
        for part in reversed(self._parts.values()):
            metrics |= part.metrics()
        metrics |= dict(scores or {}) | {"updates": updates, "replay": replay}
        wall_s = perf_counter() - self._began
        metrics |= {"clock/train_s": self._train_s(), "clock/wall_s": wall_s, **self._speed}
        self.store.log(steps, metrics)
        self._listen(steps, metrics)

    def _measure_speed(self, steps: int, updates: int) -> None:
        """Take the speed of training since it was last taken; evaluations do not count."""
        now, (then, old_steps, old_updates) = self._train_s(), self._mark
        if steps > old_steps:
            elapsed = max(now - then, 1e-9)
            self._speed = {
                "clock/steps_per_s": (steps - old_steps) / elapsed,
                "clock/updates_per_s": (updates - old_updates) / elapsed,
            }
            self._mark = (now, steps, updates)

    def _save(self) -> None:
        """Write everything that going on needs."""
        state: dict[str, Any] = {name: part.state() for name, part in self._parts.items()}
        state["run"] = {
            "best": None if np.isinf(self.best) else self.best,
            "last_due": {name: due.last for name, due in self._due.items()},
        }
        self.store.save(self.learner.counters().steps, state, self.learner.replay)

    def _restore(self, state: dict[str, Any]) -> None:
        run = state.pop("run")
        self.best = -np.inf if run["best"] is None else run["best"]
        for name, last in run["last_due"].items():
            self._due[name].last = last
        try:
            for name, part in self._parts.items():
                part.load_state(state[name])
        except BadConfig as error:
            raise BadConfig(
                f"{self.store.folder.path} cannot go on: {error} Resume it with the settings and "
                "the version that it was begun with, or begin anew in another folder."
            ) from None

    def _train_s(self) -> float:
        return perf_counter() - self._began - self._evaluation_s
