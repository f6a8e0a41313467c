"""Play in the environments with the learner's policy, and hand it every step."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.faults import lost_rows, paused_rows
from maniple.core.random_actions import random_actions
from maniple.data.frame_stack import FrameStack
from maniple.learn.config import TrainConfig
from maniple.learn.episode_stats import EpisodeStats
from maniple.learn.make import stack_of
from maniple.learn.off_policy import OffPolicyLearner
from maniple.run.learner import State
from maniple.run.ranks import Ranks


class Collector:
    """Steps the environments, if wanted in a thread beside the learner."""

    def __init__(
        self, envs: Any, learner: OffPolicyLearner, config: TrainConfig, ranks: Ranks
    ) -> None:
        self.envs, self.learner = envs, learner
        self._config = config
        self._frames = FrameStack(envs.layout, stack_of(config.agent))
        self._stats = EpisodeStats(envs.num_envs)
        self._rng = np.random.default_rng([config.run.seed, ranks.rank])
        self._thread = ThreadPoolExecutor(1, "stepping") if config.machine.overlap else None
        self._wait: Callable[[], Any] | None = None

    def reset(self, seed: int | None = None) -> None:
        """Begin new episodes in all rows."""
        obs, _ = self.envs.reset(seed=self._config.run.seed if seed is None else seed)
        self.obs = dict(self.envs.named(obs))
        self.learner.replay.begin(self.obs)
        self._seen = self._frames.begin(self.obs)

    def act(self) -> NDArray:
        """Choose an action for every row: at random at first, then by the policy."""
        if self.learner.steps < self._config.replay.random_steps:
            return random_actions(self.envs.action_spec, self.envs.num_envs, self._rng)
        return self.learner.act(self._seen)

    def begin_step(self, action: NDArray) -> None:
        """Set the environments going."""
        if self._thread is None:
            self._wait = lambda: self.envs.step(action)
        else:
            self._wait = self._thread.submit(self.envs.step, action).result

    def end_step(self, action: NDArray) -> None:
        """Wait for the step that was begun, and hand it to the learner."""
        assert self._wait is not None, "begin_step() comes first"
        obs, reward, terminated, truncated, info = self._wait()
        self.obs = dict(self.envs.named(obs))
        ended, lost = terminated | truncated, lost_rows(info)
        paused = paused_rows(info)
        self.learner.add(action, reward, terminated, truncated, self.obs, lost, paused)
        self._seen = self._frames.push(self.obs, ended, lost)
        self._stats.add(reward, ended, info)

    def metrics(self) -> dict[str, float]:
        """Means over the last episodes."""
        return self._stats.summary()

    def state(self) -> State:
        """Return where every row is, and what comes next."""
        return {
            "episodes": self._stats.state(),
            "rng": self._rng.bit_generator.state,
            "frames": self._frames.state(),
            "envs": self._env_states(),
        }

    def load_state(self, state: State) -> None:
        """Go on in the middle of the episodes, or with new ones where rows cannot be restored."""
        self._rng.bit_generator.state = state["rng"]
        if state["envs"] is None:
            # New episodes, and not the ones that the run began with.
            self._stats.load_ended(state["episodes"])
            self.reset(seed=int(self._rng.integers(2**31)))
            return
        self._stats.load(state["episodes"])
        self.envs.reset(seed=self._config.run.seed)
        self.envs.set_state(state["envs"])
        self.obs = self.learner.replay.newest()
        self._seen = self._frames.load(state["frames"], self.obs)

    def _env_states(self) -> list[Any] | None:
        try:
            return list(self.envs.get_state())
        except BadConfig:
            # Somebody's own environment: its episodes will begin anew.
            return None

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.shutdown()
