"""Phase 2: explore where the teacher's model does not know what will happen."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maniple.agents.agent import adam_tensors, flat, load_exactly
from maniple.core.spec import ArraySpec, Layout
from maniple.run.folder import plain
from maniple.run.learner import State
from maniple.run.ranks import Ranks
from maniple.world.adapter import StudentAdapter
from maniple.world.config import WorldConfig
from maniple.world.coverage import Coverage, find_place
from maniple.world.ensemble import Ensemble
from maniple.world.moment import moment_at
from maniple.world.mpc import MpcExplorer
from maniple.world.phase_learner import PhaseLearner
from maniple.world.ppo import PpoExplorer
from maniple.world.prediction import WorldModel
from maniple.world.rewards import Rewards
from maniple.world.shapes import Batch, batch_of
from maniple.world.teacher_checkpoint import LoadedTeacher
from maniple.world.tracker import Tracker
from maniple.world.updater import Updater

RATE = 1e-3
BATCH_SIZE = 32


class EnsembleLesson(nn.Module):
    """What an explorer trains: heads that predict the codes of a model that stays as it is."""

    def __init__(self, model: WorldModel, ensemble: Ensemble) -> None:
        super().__init__()
        self.ensemble = ensemble
        # Not a submodule: the teacher's weights are neither trained nor stored with it.
        self._teacher = (model,)

    def forward(self, batch: Batch, draw: int) -> dict[str, Tensor]:
        """Return the loss of the heads on one true step."""
        model, size = self._teacher[0], self._teacher[0].history
        with torch.no_grad():
            before, code, after = (_code(model, batch, k) for k in range(3))
        last, action = batch.action[:, size - 1], batch.action[:, size]
        return {"ensemble": self.ensemble.loss(before, code, last, action, after)}


def _code(model: WorldModel, batch: Batch, step: int) -> Tensor:
    return model.codes(moment_at(batch, step, model.history, model.blank_memory(len(batch.frames))))


class Student(PhaseLearner):
    """An explorer, the heads that make it curious, and what it has seen."""

    def __init__(
        self, config: WorldConfig, teacher: LoadedTeacher, layout: Layout, action: ArraySpec,
        ranks: Ranks, player: StudentAdapter | None = None,
    ) -> None:  # fmt: skip
        """Prepare phase 2.

        Args:
            player: Somebody else's policy that plays instead of an explorer of ours.
        """
        student, training = config.student, config.training
        super().__init__(training, teacher.shapes, layout, action, ranks)
        module: Any = teacher.model
        module.to(self.device)
        self.model, self._teacher_config = teacher.model, teacher.config.teacher
        self.ensemble = deepcopy(teacher.model.ensemble).train()
        lesson: Any = EnsembleLesson(teacher.model, self.ensemble)
        self.updater = Updater(
            lesson, {}, training.learning_rate or RATE, ranks, None,
            training.gradient_accumulation, training.mixed_precision,
        )  # fmt: skip
        self.rewards = Rewards(teacher.model, self.ensemble, student)
        if student.algorithm == "mpc":
            place = find_place(layout, teacher.shapes.states)
            self.explorer: Any = MpcExplorer(teacher.model, self.ensemble, action, student, place)
        else:
            self.explorer = PpoExplorer(teacher.model, action, ranks, training.seed)
        self.player: StudentAdapter = player or self.explorer
        self.coverage, self._eye = Coverage(), Tracker(teacher.model)
        self._given: list[dict[str, Tensor]] = []

    def begin(self) -> None:
        """A round begins; its number decides what is drawn in it."""
        self.explorer.begin(self._seed * 100_003 + self.episodes)
        self._eye.reset()
        self.rewards.reset()
        self._given = []

    def watch(self, before: Mapping, action: NDArray, after: Mapping) -> None:
        """Reward one step, from what was seen after it."""
        self.coverage.add(after)
        eye = self._eye
        if eye.moment is None:
            eye.see(before)
        moment, code_before, code = eye.moment, eye.before, eye.code
        assert moment is not None and code_before is not None and code is not None
        taken = torch.from_numpy(np.asarray(action, np.float32).reshape(len(action), -1))
        taken = taken.to(self.device)
        eye.did(taken)
        now = eye.see(after)
        self._given.append(self.rewards.terms(code_before, code, moment, taken, now))

    def update(self, new_steps: int) -> int:
        """Train the heads on what was seen, and the explorer on its rewards."""
        due = new_steps * self._training.updates_per_episode
        for _ in range(due):
            count = self._training.gradient_accumulation
            self._metrics = self.updater.step([self._draw() for _ in range(count)])
        self._metrics |= self._learn()
        return due

    def _learn(self) -> dict[str, float]:
        if not self._given:
            return {}
        terms = {name: torch.stack([given[name] for given in self._given])
                 for name in self._given[0]}  # fmt: skip
        total = torch.stack([self.rewards.total(given) for given in self._given])
        found = {f"reward/{name}": float(values.mean()) for name, values in terms.items()}
        found["reward/total"] = float(total.mean())
        learned = self.explorer.learn(total.cpu().numpy()) if self.player is self.explorer else {}
        return found | learned | self.coverage.metrics()

    def _draw(self) -> Batch:
        count = self._training.batch_size or BATCH_SIZE
        windows = self.replay.sample(count, self._training.sequence_length, self.model.history)
        return batch_of(windows, self.shapes, self.device)

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row."""
        return self.player.act(obs)

    def state(self) -> State:
        """Return everything but the episodes."""
        memory = self.rewards.memory
        return super().state() | {
            "explorer": self.explorer.state(),
            "teacher": plain(self._teacher_config),
            "coverage": self.coverage.state(),
            "memory": {} if memory is None else _arrays(memory, self.rewards.optimizer),
        }

    def load_state(self, state: State) -> None:
        """Go on from there; the episodes are restored by whoever stored them."""
        super().load_state(state)
        self.explorer.load_state(state["explorer"])
        self.coverage.load_state(state["coverage"])
        if self.rewards.memory is not None:
            _load(self.rewards.memory, self.rewards.optimizer, state["memory"])


def _arrays(module: nn.Module, adam: torch.optim.Optimizer) -> dict[str, NDArray]:
    found = flat("memory", module.state_dict())
    found |= {k: v.cpu().numpy() for k, v in adam_tensors("memory", adam).items()}
    return {name: np.array(array) for name, array in found.items()}


def _load(module: nn.Module, adam: torch.optim.Optimizer, arrays: Mapping[str, NDArray]) -> None:
    own = {f"memory.{k}": v for k, v in module.state_dict().items()}
    load_exactly({**own, **adam_tensors("memory", adam)}, arrays)
