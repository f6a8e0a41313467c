"""Learn from a replay of steps, at the pace that the config sets."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import NDArray

from maniple.core.spec import ArraySpec, Layout
from maniple.data.arriving import ArrivingDemos
from maniple.data.demo_mix import DemoMix, buffer_of
from maniple.data.replay_buffer import ReplayBuffer
from maniple.learn.config import TrainConfig
from maniple.learn.demos import control_of, demonstrations
from maniple.learn.make import make_agent, stack_of
from maniple.run.learner import Counters, State
from maniple.run.ranks import Ranks
from maniple.run.when import Ratio

CALIBRATED_ON = 2_000
"""Observations from which the scale of the networks' inputs is taken."""


class OffPolicyLearner:
    """An agent and its replay; makes as many updates as the steps so far have earned."""

    def __init__(
        self, config: TrainConfig, layout: Layout, action: ArraySpec, rows: int, ranks: Ranks
    ) -> None:
        """Make an untrained agent and an empty replay of `rows` rows."""
        replay, stack = config.replay, stack_of(config.agent)
        # Rank 0 draws what a run without ranks draws.
        seed = config.run.seed * 1_000_003 + ranks.rank
        noise_seed = config.run.seed if ranks.is_main else seed
        self.agent = make_agent(config, layout, action, noise_seed)
        self.agent.sync = ranks.average if ranks.world_size > 1 else None
        self.action = action
        self.replay = ReplayBuffer(
            layout, action, rows, replay.replay_buffer_capacity, seed, stack, replay.replay_folder
        )
        shown = demonstrations(config)
        demos = buffer_of(shown, layout, action, seed + 1, stack) if shown else None
        self._arriving: ArrivingDemos | None = None
        if config.demos.demos_from is not None:
            self._arriving = ArrivingDemos(
                config.demos.demos_from, layout, action, replay.replay_buffer_capacity, seed + 1,
                stack, shown, control_of(config),
            )  # fmt: skip
            demos = self._arriving.ring
        self._mix = DemoMix(self.replay, demos, config.demos.demo_share)
        self.steps = 0
        self.moved = rows
        """Rows that took a step in the last vector step; the others paused."""
        # Ranks update together: what they count must not depend on what only one of them met.
        self._is_alone = ranks.world_size == 1
        self._config = config
        self._due = Ratio(replay.utd_ratio / replay.steps_per_update)
        self._metrics: dict[str, float] = {}

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row."""
        return self.agent.act(obs, explore)

    def add(self, action, reward, terminated, truncated, next_obs, lost=None, paused=None) -> None:
        """Remember one vector step; rows that paused count as no step, lost ones do."""
        self.replay.add(action, reward, terminated, truncated, next_obs, lost)
        self.moved = len(reward)
        if paused is not None and self._is_alone:
            self.moved -= int(paused.sum())
        self.steps += self.moved

    def update(self, new_steps: int, most: int | None = None) -> int:
        """Make the updates that `new_steps` more steps bring; those beyond `most` stay owed."""
        config = self._config.replay
        discount = self._config.agent.discount
        if self.steps < config.training_starts:
            return 0
        if self._arriving is not None:
            self._arriving.look()
        if self.agent.updates == 0:
            self.agent.calibrate(self._mix.sample(CALIBRATED_ON, discount).obs)
        due = self._due(new_steps)
        if most is not None and due > most:
            self._due.owed += due - most
            due = most
        for _ in range(due):
            batch = self._mix.sample(config.batch_size, discount, config.n_step)
            self._metrics = self.agent.update(batch)
        return due

    @property
    def owed(self) -> float:
        """Updates that are due but not made."""
        return self._due.owed

    def weights(self) -> dict[str, NDArray]:
        """Return what acting needs."""
        return self.agent.weights()

    def counters(self) -> Counters:
        """How far it has come."""
        return Counters(self.steps, self.agent.updates, len(self.replay))

    def metrics(self) -> dict[str, float]:
        """What the last update found."""
        if self._arriving is None:
            return self._metrics
        return {**self._metrics, "demos/episodes": self._arriving.taken}

    def state(self) -> State:
        """Return everything but the replay."""
        demos = self._mix.demos
        return {
            "agent": self.agent.state(),
            "steps": self.steps,
            "updates_owed": self._due.owed,
            "metrics": self._metrics,
            "replay_rng": self.replay.rng_state(),
            "demo_rng": demos.rng_state() if demos is not None else None,
            "demo_episodes": self._arriving.taken if self._arriving is not None else 0,
        }

    def load_state(self, state: State) -> None:
        """Go on from there; the replay is filled by whoever stored it."""
        self.agent.load_state(state["agent"])
        self.steps = state["steps"]
        self._due.owed = state["updates_owed"]
        self._metrics = state["metrics"]
        self.replay.set_rng_state(state["replay_rng"])
        if self._arriving is not None:
            self._arriving.take_until(state.get("demo_episodes", 0))
        if self._mix.demos is not None and state["demo_rng"]:
            self._mix.demos.set_rng_state(state["demo_rng"])
