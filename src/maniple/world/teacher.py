"""Phase 1: learn to predict, from episodes that noise and experts play."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.sequence_buffer import Windows
from maniple.run.ranks import Ranks
from maniple.world.config import WorldConfig
from maniple.world.models import find_preset, make_model
from maniple.world.phase_learner import PhaseLearner
from maniple.world.shapes import Shapes, batch_of
from maniple.world.updater import Updater

CALIBRATED_ON = 2_000
"""Frames from which the scale of the states is taken."""


class Teacher(PhaseLearner):
    """A world model and the episodes that it learns from; its steps are rounds of episodes."""

    def __init__(
        self, config: WorldConfig, shapes: Shapes, layout: Layout, action: ArraySpec, ranks: Ranks
    ) -> None:
        """Make an untrained model and an empty buffer."""
        training, preset = config.training, find_preset(config.teacher.model)
        super().__init__(training, shapes, layout, action, ranks)
        module: Any = make_model(shapes, config.teacher, training.seed)
        self.model = module.to(self.device).eval()
        self.updater = Updater(
            self.model,
            preset.weights,
            training.learning_rate or preset.learning_rate,
            ranks,
            training.num_episodes * training.updates_per_episode,
            training.gradient_accumulation,
            training.mixed_precision,
            preset.paces,
        )
        self._batch_size = training.batch_size or preset.batch_size

    def update(self, new_steps: int) -> int:
        """Make the updates that so many rounds bring."""
        if self.updater.updates == 0:
            self.calibrate()
        due = new_steps * self._training.updates_per_episode
        for _ in range(due):
            count = self._training.gradient_accumulation
            self._metrics = self.updater.step([self.draw() for _ in range(count)])
        return due

    def calibrate(self) -> None:
        """Take the scale of the states from what was played so far."""
        if self.shapes.state_size:
            state = batch_of(self.replay.sample(CALIBRATED_ON, 1), self.shapes).state
            self.model.calibrate(state.to(self.device))

    def draw(self, **options: Any) -> Any:
        """Draw a batch, and many single steps of the states alone."""
        windows = self.windows(self._batch_size, **options)
        return self.walked(batch_of(windows, self.shapes, self.device))

    def windows(self, count: int, **options: Any) -> Windows:
        """Draw stretches as long as an update wants them."""
        length = self._training.sequence_length
        return self.replay.sample(count, length, self.model.history, **options)

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Refuse: a teacher predicts."""
        raise BadConfig(
            "A teacher predicts and does not act; plan with it: maniple eval --planner."
        )
