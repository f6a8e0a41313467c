"""What the learners of all three phases have: episodes, an updater, and their state."""

from __future__ import annotations

from dataclasses import asdict

import torch
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec, Layout
from maniple.data.sequence_buffer import SequenceBuffer, kept
from maniple.run.device import device_of
from maniple.run.learner import Counters, State
from maniple.run.ranks import Ranks
from maniple.world.config import TrainingConfig
from maniple.world.prediction import WorldModel
from maniple.world.shapes import Batch, Shapes, with_walk
from maniple.world.source import Played
from maniple.world.updater import Updater

WALK_STEPS = 256
"""Single steps of states in an update: they cost a hundredth of one picture each."""


class PhaseLearner:
    """Counts rounds of episodes, remembers them, and is stored; a phase says what is learned."""

    model: WorldModel
    updater: Updater

    def __init__(
        self,
        training: TrainingConfig,
        shapes: Shapes,
        layout: Layout,
        action: ArraySpec,
        ranks: Ranks,
    ) -> None:
        """Begin with an empty buffer."""
        self.device = torch.device(device_of(training.device))
        self.shapes, self.episodes = shapes, 0
        self._training = training
        self._seed = training.seed * 1_000_003 + ranks.rank
        self.replay = SequenceBuffer(
            kept(layout, shapes.names), action, training.buffer_frames, self._seed
        )
        self._metrics: dict[str, float] = {}

    def add(self, played: Played, source: int = 0) -> None:
        """Remember a round of episodes."""
        for episode, solved in played:
            self.replay.add(episode, source, solved)
        self.episodes += 1

    def walked(self, batch: Batch) -> Batch:
        """Add single steps of the states alone, of everything that is remembered."""
        if not self.shapes.state_size:
            return batch
        steps = self.replay.sample(WALK_STEPS, 1, self.model.history, names=self.shapes.states)
        return with_walk(batch, steps, self.shapes)

    def weights(self) -> dict[str, NDArray]:
        """Return what is trained."""
        return self.updater.weights()

    def counters(self) -> Counters:
        """How far it has come."""
        return Counters(self.episodes, self.updater.updates, len(self.replay))

    def metrics(self) -> dict[str, float]:
        """What the last round found."""
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
