"""Train in one process: the engine steps while the learner updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.rank import Rank
from maniple.data.mix import Mix, ring_of
from maniple.data.ring import Ring
from maniple.data.stack import FrameStack
from maniple.learn.config import TrainConfig
from maniple.learn.course import Course, Listen, Result, Snapshot
from maniple.learn.demos import demonstrations
from maniple.learn.make import make_agent, make_envs, stack_of
from maniple.learn.meter import Meter
from maniple.learn.pupil import Pupil
from maniple.learn.ranks import share_gradients
from maniple.learn.resume import env_states, restore_envs
from maniple.run.tree import split, unsplit
from maniple.run.when import Until

# Rows of these infos show something that does not follow from what they did.
LOST = ("worker_restarted", "worker_restarting", "env_error")


def train(
    config: TrainConfig,
    run_dir: Path,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    until: Until | None = None,
) -> Result:
    """Train until the end that the config names; `Training.run` is what happens in a step."""
    with Training(config, run_dir, resume, listen) as training:
        return training.run(until or Until(config.max_steps, config.max_minutes))


class Training:
    """A run: environments, agent, replay, and its course."""

    def __init__(self, config: TrainConfig, run_dir: Path, resume: bool, listen: Listen) -> None:
        self.config = config
        rank, stack = Rank.here(), stack_of(config.agent)
        self.envs = make_envs(config, config.num_envs)
        layout, action = self.envs.layout, self.envs.action_spec
        self.agent = make_agent(config, layout, action, config.seed)
        share_gradients(self.agent)
        seed = config.seed * 1_000_003 + rank.rank
        self.ring = Ring(
            layout, action, config.num_envs, config.replay_buffer_capacity, seed, stack,
            config.replay_folder,
        )  # fmt: skip
        shown = demonstrations(config)
        demos = ring_of(shown, layout, action, seed + 1, stack) if shown else None
        self.pupil = Pupil(config, self.agent, Mix(self.ring, demos, config.demo_share))
        self.frames = FrameStack(layout, stack)
        self.meter = Meter(config.num_envs)
        self.rng = np.random.default_rng([config.seed, rank.rank])
        self.steps = 0
        # Last, so that a mistake in the settings leaves no folder behind.
        self.course = Course(config, run_dir, resume, listen)
        self._hand = ThreadPoolExecutor(1, "stepping")
        found = self.course.restore(self.ring) if resume else None
        if found is None:
            self.reset()
        else:
            self._restore(*found)

    def reset(self) -> None:
        """Begin new episodes in all rows."""
        obs, _ = self.envs.reset(seed=self.config.seed)
        self.obs = dict(self.envs.named(obs))
        self.ring.begin(self.obs)
        self.seen = self.frames.begin(self.obs)

    def run(self, until: Until) -> Result:
        """Act, step, learn, remember; and whatever else is due."""
        while until(self.steps):
            action = self._act()
            flight = self._depart(action)
            self.pupil.learn(self.steps, self.config.num_envs)
            self._land(action, flight())
            if self.course.attend(self):
                break
        return self.course.finish(self)

    def _act(self) -> NDArray:
        if self.steps < self.config.random_steps:
            return random_actions(self.envs, self.rng)
        return self.agent.act(self.seen)

    def _depart(self, action: NDArray) -> Callable[[], Any]:
        """Begin a step; call what is returned for its result."""
        if self.config.overlap:
            return self._hand.submit(self.envs.step, action).result
        return lambda: self.envs.step(action)

    def _land(self, action: NDArray, result: Any) -> None:
        obs, reward, terminated, truncated, info = result
        self.obs = dict(self.envs.named(obs))
        ended = terminated | truncated
        self.ring.add(action, reward, terminated, truncated, self.obs, lost_rows(info))
        self.seen = self.frames.push(self.obs, ended)
        self.meter.add(reward, ended, info)
        self.steps += self.config.num_envs

    def told(self) -> dict[str, float]:
        """Return what is known besides evaluations."""
        return self.meter.summary() | self.pupil.told

    def snapshot(self) -> Snapshot:
        """Return everything but the replay that going on exactly needs."""
        arrays, state = self.pupil.snapshot()
        state |= {
            "steps": self.steps,
            "meter": self.meter.state(),
            "rng": self.rng.bit_generator.state,
            "envs": split(env_states(self.envs), "env", arrays),
            "frames": split(self.frames.state(), "frames", arrays),
        }
        return arrays, state

    def _restore(self, arrays: dict[str, NDArray], state: dict[str, Any]) -> None:
        self.pupil.restore(arrays, state)
        self.steps = state["steps"]
        self.meter.load(state["meter"])
        self.rng.bit_generator.state = state["rng"]
        envs = unsplit(state["envs"], arrays)
        if envs is None:
            self.reset()
            return
        restore_envs(self.envs, envs, self.config.seed)
        self.obs = self.ring.newest()
        self.seen = self.frames.load(unsplit(state["frames"], arrays), self.obs)

    def close(self) -> None:
        """Let go of workers and files."""
        self._hand.shutdown()
        self.envs.close()
        self.course.close()

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def random_actions(envs: Any, rng: np.random.Generator) -> NDArray:
    """Draw actions anywhere within the bounds."""
    low, high = envs.action_spec.bounds()
    shape = (envs.num_envs, *envs.action_spec.shape)
    return np.clip(rng.uniform(low, high, shape).astype(envs.action_spec.dtype), low, high)


def lost_rows(info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Rows whose new observation does not follow from their action."""
    masks = [info[f"_{key}"] for key in LOST if f"_{key}" in info]
    return np.logical_or.reduce(masks) if masks else None
