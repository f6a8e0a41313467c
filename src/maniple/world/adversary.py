"""Phase 3: a world model learns where an explorer finds it wrong."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maniple.agents.agent import load_exactly
from maniple.core.spec import ArraySpec, Layout
from maniple.data.sequence_buffer import Windows
from maniple.run.folder import plain
from maniple.run.learner import State
from maniple.run.ranks import Ranks
from maniple.world.config import WorldConfig
from maniple.world.coverage import Coverage, find_place
from maniple.world.models import find_preset
from maniple.world.moment import moment_at, true_action
from maniple.world.mpc import MpcExplorer
from maniple.world.phase_learner import PhaseLearner
from maniple.world.ppo import PpoExplorer
from maniple.world.shapes import Batch, batch_of
from maniple.world.source import Played
from maniple.world.support import Support, support_of
from maniple.world.teacher_checkpoint import LoadedTeacher
from maniple.world.updater import Updater

OLD, NEW = 0, 1
"""Sources in the buffer: what the teacher learned from, and what this phase played."""
RATE_PART = 0.6
"""Part of the teacher's learning rate with which it goes on."""
LEAST_PRIORITY = 0.1
POOL_EVERY = 4


class Adversary(PhaseLearner):
    """A world model that goes on learning, and an explorer that is rewarded for its errors."""

    def __init__(
        self, config: WorldConfig, teacher: LoadedTeacher, layout: Layout, action: ArraySpec,
        ranks: Ranks,
    ) -> None:  # fmt: skip
        """Prepare phase 3; the explorer is that of the student's settings."""
        training, preset = config.training, find_preset(teacher.config.teacher.model)
        super().__init__(training, teacher.shapes, layout, action, ranks)
        module: Any = teacher.model
        module.to(self.device)
        self.model = teacher.model
        self._config, self._adversarial = config, config.adversarial
        self._teacher_config = teacher.config.teacher
        rate = training.learning_rate or RATE_PART * preset.learning_rate
        rounds = config.adversarial.total_iterations or training.num_episodes
        self.updater = Updater(
            self.model, preset.weights, rate, ranks, rounds * training.updates_per_episode,
            training.gradient_accumulation, training.mixed_precision, preset.paces,
        )  # fmt: skip
        if config.student.algorithm == "mpc":
            place = find_place(layout, teacher.shapes.states)
            settings = config.student
            if not teacher.shapes.state_size:
                # Codes of a model that learns do not stay what they were: novelty would mislead.
                settings = replace(settings, novelty=0.0)
            self.explorer: Any = MpcExplorer(
                self.model, self.model.ensemble, action, settings, place
            )
        else:
            self.explorer = PpoExplorer(self.model, action, ranks, training.seed)
        self._pool: list[dict[str, Any]] = []
        self._now: dict[str, Any] | None = None
        self._noise_plays = True
        self.coverage = Coverage()
        self._batch_size = training.batch_size or preset.batch_size
        self._step_errors = self._step_costs = np.zeros((0, 0), np.float32)

    @property
    def is_warming_up(self) -> bool:
        """Whether noise still plays instead of the explorer."""
        return self.episodes < self._adversarial.warm_up

    def begin(self) -> None:
        """A round begins: choose which explorer plays it."""
        self._noise_plays = self.is_warming_up
        self.explorer.begin(self._seed * 100_003 + self.episodes)
        if isinstance(self.explorer, MpcExplorer):
            self.explorer.constraint = self._adversarial.constraint
            old = OLD if self.replay.count(2, OLD) else None
            if self.explorer.support is None and self.replay.count(2, old):
                self.explorer.support = support_of(self.replay, old)
        if self._pool and self.episodes % POOL_EVERY == POOL_EVERY - 1:
            self._now = self._explorer_state()
            self._load_explorer(self._pool[self.episodes // POOL_EVERY % len(self._pool)])

    def watch(self, before: Mapping, action: NDArray, after: Mapping) -> None:
        """Note where the gripper was."""
        self.coverage.add(after)

    def add(self, played: Played, source: int = NEW) -> None:
        """Remember a round of episodes, its worst predicted stretches first."""
        first = self.replay.total
        super().add(played, source)
        errors = self._errors(first)
        self._metrics["error/explorer"] = float(np.mean(errors)) if len(errors) else float("nan")

    def update(self, new_steps: int) -> int:
        """Let the model learn from old and new, then the explorer from the model's errors."""
        training = self._config.training
        due = new_steps * training.updates_per_episode
        for _ in range(due):
            batches = [self._draw() for _ in range(training.gradient_accumulation)]
            self._metrics |= self.updater.step(batches)
        self._learn()
        self._metrics |= self.coverage.metrics()
        return due

    def _learn(self) -> None:
        if isinstance(self.explorer, MpcExplorer):
            self._metrics |= self.explorer.learn(self._step_errors)
        elif self._now is None and not self._noise_plays:
            reward = self._step_errors - self._adversarial.constraint * self._step_costs
            self._metrics |= self.explorer.learn(reward)
        if self._now is not None:
            # An old explorer played: the present one was not there and learned nothing from it.
            self._load_explorer(self._now)
            self._now = None
        if self.episodes % POOL_EVERY == 0:
            self._pool = [*self._pool, self._explorer_state()][-self._adversarial.pool :]

    def _errors(self, first: int) -> NDArray:
        """Measure the stretches that are new, and draw the worst ones more often."""
        length = self._config.training.sequence_length
        starts = self.replay.starts(length)
        starts = starts[starts >= first]
        if not len(starts):
            return np.zeros(0)
        errors = np.concatenate([
            self._one_step(self.replay.windows(part, length, self.model.history))
            for part in np.array_split(starts, -(-len(starts) // 128))
        ])  # fmt: skip
        if self._adversarial.prioritise:
            relative = errors / max(float(errors.mean()), 1e-9)
            self.replay.prioritise(starts, np.maximum(relative, LEAST_PRIORITY))
        self._keep_for_explorer(starts, errors, first)
        return errors

    @torch.no_grad()
    def _one_step(self, windows: Windows) -> NDArray:
        """Error of the model's next frame and state at the beginning of stretches, (B,)."""
        batch = batch_of(windows, self.shapes, self.device)
        blank = self.model.blank_memory(len(batch.frames))
        moment = moment_at(batch, 0, self.model.history, blank)
        action = true_action(batch, 0, self.model.history)
        said, _ = self.model.advance(self.model.begin(moment), action)
        frame = (said.frame - batch.frames[:, self.model.history]).square().mean((1, 2, 3))
        state = (said.state - batch.state[:, self.model.history]).square().mean(-1)
        return torch.where(frame.isfinite(), frame, state).cpu().numpy()

    def _keep_for_explorer(self, starts: NDArray, errors: NDArray, first: int) -> None:
        """Lay errors out by step and row, as PPO's rewards; the last steps repeat the mean."""
        steps = self._config.training.steps_per_episode
        rows = max(1, (self.replay.total - first) // (steps + 1))
        laid = np.full((steps, rows), errors.mean(), np.float32)
        row, step = np.divmod(starts - first, steps + 1)
        laid[step, row] = errors
        self._step_errors = laid / max(float(errors.mean()), 1e-9)
        self._step_costs = np.zeros_like(laid)
        if self._adversarial.constraint and self.replay.count(2):
            support = support_of(self.replay, OLD if self.replay.count(2, OLD) else None)
            numbers = (first + np.arange(rows * (steps + 1))) % self.replay.capacity
            action = torch.from_numpy(self.replay.arrays["action"][numbers].reshape(
                rows, steps + 1, -1)).transpose(0, 1)  # fmt: skip
            last = torch.cat([torch.zeros_like(action[:1]), action[:-2]])
            self._step_costs = support.cost(last, action[:-1]).numpy()

    def _draw(self) -> Batch:
        share, length = self._adversarial.replay_share, self._config.training.sequence_length
        old = round(self._batch_size * share) if self.replay.count(length, OLD) else 0
        size, parts = self.model.history, []
        if old:
            parts.append(self.replay.sample(old, length, size, OLD))
        if old < self._batch_size:
            by_priority = self._adversarial.prioritise
            parts.append(self.replay.sample(self._batch_size - old, length, size, NEW, by_priority))
        batches = [batch_of(part, self.shapes, self.device) for part in parts]
        return self.walked(Batch(*(torch.cat(arrays) for arrays in zip(*batches, strict=True))))

    def _explorer_state(self) -> dict[str, Any]:
        if isinstance(self.explorer, PpoExplorer):
            return self.explorer.state()
        return {k: v.cpu().numpy().copy() for k, v in self.explorer.ensemble.state_dict().items()}

    def _load_explorer(self, state: Mapping[str, Any]) -> None:
        if isinstance(self.explorer, PpoExplorer):
            self.explorer.load_state(state)
            return
        # A copy plays: the model's own heads must not be changed by playing.
        if self.explorer.ensemble is self.model.ensemble and state is not self._now:
            self.explorer.ensemble = deepcopy(self.model.ensemble)
        if state is self._now:
            self.explorer.ensemble = self.model.ensemble
            return
        load_exactly(dict(self.explorer.ensemble.state_dict()), dict(state))

    def _support(self) -> list[NDArray]:
        found = getattr(self.explorer, "support", None)
        return [] if found is None else [part.cpu().numpy().copy() for part in found]

    def take_student(self, student: State) -> None:
        """Begin with a student's explorer instead of a new one."""
        if isinstance(self.explorer, PpoExplorer):
            self.explorer.load_state(student["explorer"])
            return
        heads = student["updater"]["model"]
        own = {f"model.ensemble.{k}": v for k, v in self.model.ensemble.state_dict().items()}
        load_exactly(own, {k: v for k, v in heads.items() if k.startswith("model.ensemble.")})
        if student["explorer"]:
            self.explorer.load_state(student["explorer"])

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row."""
        return self.explorer.act(obs)

    def state(self) -> State:
        """Return everything but the episodes."""
        return super().state() | {
            "explorer": self.explorer.state(),
            "support": self._support(),
            "pool": self._pool,
            "teacher": plain(self._teacher_config),
            "coverage": self.coverage.state(),
        }

    def load_state(self, state: State) -> None:
        """Go on from there; the episodes are restored by whoever stored them."""
        super().load_state(state)
        self.explorer.load_state(state["explorer"])
        if isinstance(self.explorer, MpcExplorer) and state["support"]:
            self.explorer.support = Support(*(torch.from_numpy(a) for a in state["support"]))
        self._pool = list(state["pool"])
        self.coverage.load_state(state["coverage"])
