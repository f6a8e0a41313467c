"""Phase 1: learn to predict, from episodes that noise and experts play."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.sequence_buffer import SequenceBuffer, Windows, kept
from maniple.run.device import device_of
from maniple.run.learner import Counters, State
from maniple.run.ranks import Ranks
from maniple.world.config import WorldConfig
from maniple.world.models import find_preset, make_model
from maniple.world.shapes import Shapes, batch_of
from maniple.world.source import Played
from maniple.world.updater import Updater

CALIBRATED_ON = 2_000
"""Frames from which the scale of the states is taken."""


class Teacher:
    """A world model and the episodes that it learns from; its steps are rounds of episodes."""

    def __init__(
        self, config: WorldConfig, shapes: Shapes, layout: Layout, action: ArraySpec, ranks: Ranks
    ) -> None:
        """Make an untrained model and an empty buffer."""
        training, preset = config.training, find_preset(config.teacher.model)
        self.device = torch.device(device_of(training.device))
        self.shapes, self.episodes = shapes, 0
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
        )
        self.replay = SequenceBuffer(
            kept(layout, shapes.names), action, training.buffer_frames,
            training.seed * 1_000_003 + ranks.rank,
        )  # fmt: skip
        self._batch_size = training.batch_size or preset.batch_size
        self._training = training
        self._metrics: dict[str, float] = {}

    def add(self, played: Played, source: int = 0) -> None:
        """Remember a round of episodes."""
        for episode, solved in played:
            self.replay.add(episode, source, solved)
        self.episodes += 1

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
            self.model.calibrate(state.flatten(0, 1).to(self.device))

    def draw(self, **options: Any) -> Any:
        """Draw a batch."""
        return batch_of(self.windows(self._batch_size, **options), self.shapes, self.device)

    def windows(self, count: int, **options: Any) -> Windows:
        """Draw stretches as long as an update wants them."""
        length = self._training.sequence_length
        return self.replay.sample(count, length, self.model.history, **options)

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Refuse: a teacher predicts."""
        raise BadConfig(
            "A teacher predicts and does not act; plan with it: maniple eval --planner."
        )

    def weights(self) -> dict[str, NDArray]:
        """Return the model."""
        return self.updater.weights()

    def counters(self) -> Counters:
        """How far it has come."""
        return Counters(self.episodes, self.updater.updates, len(self.replay))

    def metrics(self) -> dict[str, float]:
        """What the last update found."""
        return self._metrics

    def state(self) -> State:
        """Return everything but the episodes."""
        return {
            "updater": self.updater.state(),
            # With these the next phase can build the model before it has environments.
            "shapes": asdict(self.shapes),
            "episodes": self.episodes,
            "draws": self.replay.draw_state(),
            "metrics": self._metrics,
        }

    def load_state(self, state: State) -> None:
        """Go on from there; the episodes are restored by whoever stored them."""
        self.updater.load_state(state["updater"])
        self.episodes = state["episodes"]
        self.replay.load_draw_state(state["draws"])
        self._metrics = state["metrics"]
