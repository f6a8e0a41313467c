"""An agent and what it learns from, at the pace that the config sets."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from maniple.core.rank import Rank
from maniple.data.mix import Mix
from maniple.learn.config import TrainConfig
from maniple.learn.threads import Threads
from maniple.run.when import Ratio

CALIBRATED_ON = 2_000
"""Observations from which the scale of the networks' inputs is taken."""


class Pupil:
    """Makes as many updates as the steps so far have earned."""

    def __init__(self, config: TrainConfig, agent: Any, mix: Mix) -> None:
        self.agent, self.mix = agent, mix
        self.told: dict[str, float] = {}
        """What the last update said."""
        self._config = config
        self._threads = Threads(Rank.here().num_cpus(), config.torch_threads)
        self._due = Ratio(config.utd_ratio / config.steps_per_update)

    @property
    def owed(self) -> float:
        """Updates that are due but not made."""
        return self._due.owed

    def learn(self, steps: int, new_steps: int, most: int | None = None) -> int:
        """Learn from steps that have landed, for `new_steps` more of them.

        Returns:
            How many updates were made; those beyond `most` stay owed.
        """
        config = self._config
        if steps < config.training_starts:
            return 0
        if self.agent.updates == 0:
            self.agent.calibrate(self.mix.sample(CALIBRATED_ON, config.agent.discount).obs)
        due = self._due(new_steps)
        if most is not None and due > most:
            self._due.owed += due - most
            due = most
        for _ in range(due):
            self.told = self._threads.run(self._update)
        return due

    def _update(self) -> dict[str, float]:
        config = self._config
        batch = self.mix.sample(config.batch_size, config.agent.discount, config.n_step)
        return self.agent.update(batch)

    def snapshot(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        """Return everything but the replay itself."""
        arrays = {f"agent.{name}": a for name, a in self.agent.state().items()}
        demos = self.mix.demos
        state: dict[str, Any] = {
            "updates_owed": self._due.owed,
            "told": self.told,
            "ring_rng": self.mix.online.rng_state(),
            "demo_rng": demos.rng_state() if demos else None,
        }
        return arrays, state

    def restore(self, arrays: dict[str, NDArray], state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        taken = {k.removeprefix("agent."): a for k, a in arrays.items() if k.startswith("agent.")}
        self.agent.load_state(taken)
        self._due.owed = state["updates_owed"]
        self.told = state["told"]
        self.mix.online.set_rng_state(state["ring_rng"])
        if self.mix.demos is not None and state["demo_rng"]:
            self.mix.demos.set_rng_state(state["demo_rng"])
