"""Train in one process: the engine steps while the learner updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.rank import Rank
from maniple.data.mix import Mix, ring_of
from maniple.data.ring import Ring
from maniple.data.stack import FrameStack
from maniple.learn.config import TrainConfig
from maniple.learn.demos import demonstrations
from maniple.learn.evaluate import FIRST_SEED, Evaluation, evaluate
from maniple.learn.make import make_agent, make_envs, stack_of
from maniple.learn.meter import Meter
from maniple.learn.ranks import share_gradients
from maniple.learn.save import Keeper
from maniple.learn.threads import Threads
from maniple.run.when import Every, Ratio, Until

# Rows of these infos show something that does not follow from what they did.
LOST = ("worker_restarted", "worker_restarting", "env_error")
CALIBRATED_ON = 2_000
"""Observations from which the scale of the networks' inputs is taken."""
Listen = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    run_dir: Path
    steps: int
    updates: int
    evaluation: Evaluation | None
    """The last one."""
    best: float
    """Best score of any evaluation."""
    train_s: float
    """Wall time without evaluations."""
    wall_s: float


def train(
    config: TrainConfig,
    run_dir: Path,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    until: Until | None = None,
) -> Result:
    """Train until the end that the config names; see `Training` for what happens in a step."""
    until = until or Until(config.max_steps, config.max_minutes)
    with Training(config, run_dir, resume, listen) as training:
        training.run(until)
        return training.result()


class Training:
    """A run: environments, agent, replay, and what is kept of them."""

    def __init__(self, config: TrainConfig, run_dir: Path, resume: bool, listen: Listen) -> None:
        self._began = perf_counter()
        self.config = config
        rank = Rank.here()
        self._threads = Threads(rank.num_cpus(), config.torch_threads)
        self.keeper = Keeper(config, run_dir, resume, is_first=rank.rank == 0)
        self.envs = make_envs(config, config.num_envs)
        self._judge: Any = None
        layout, action = self.envs.layout, self.envs.action_spec
        self.agent = make_agent(config, layout, action, config.seed)
        share_gradients(self.agent)
        stack = stack_of(config.agent)
        seed = config.seed * 1_000_003 + rank.rank
        self.ring = Ring(
            layout, action, config.num_envs, config.replay_buffer_capacity, seed, stack,
            config.replay_folder,
        )  # fmt: skip
        shown = demonstrations(config)
        demos = ring_of(shown, layout, action, seed + 1, stack) if shown else None
        self.mix = Mix(self.ring, demos, config.demo_share)
        self.frames = FrameStack(layout, stack)
        self.meter = Meter(config.num_envs)
        self.rng = np.random.default_rng([config.seed, rank.rank])
        self.steps = 0
        self.best = -np.inf
        self.last: Evaluation | None = None
        self._updates_due = Ratio(config.utd_ratio / config.steps_per_update)
        self._log_due = Every(config.log_period)
        self._evaluation_due = Every(config.eval_period)
        self._checkpoint_due = Every(config.checkpoint_period)
        self._listen = listen
        self._told: dict[str, float] = {}
        self._aside_s = 0.0
        self._mark = (perf_counter(), 0, 0)
        self._hand = ThreadPoolExecutor(1, "stepping")
        self.obs: dict[str, NDArray] = {}
        self.seen: dict[str, NDArray] = {}
        if not (resume and self.keeper.restore(self)):
            self.reset()

    def reset(self) -> None:
        """Begin new episodes in all rows."""
        obs, _ = self.envs.reset(seed=self.config.seed)
        self.obs = dict(self.envs.named(obs))
        self.ring.begin(self.obs)
        self.seen = self.frames.begin(self.obs)

    def run(self, until: Until) -> None:
        """Act, step, learn, remember; evaluate, save and report when due."""
        while until(self.steps):
            action = self._act()
            flight = self._depart(action)
            self._learn()
            self._land(action, flight())
            if self._evaluation_due(self.steps):
                self.evaluate()
                wanted = self.config.stop_at_success
                if wanted is not None and self.last and self.last.score >= wanted:
                    break
            if self._log_due(self.steps):
                self.report()
            if self._checkpoint_due(self.steps):
                self.keeper.save(self)
        if self.last is None or self.config.stop_at_success is None:
            self.evaluate()
        self.report()
        self.keeper.save(self)

    def _act(self) -> NDArray:
        if self.steps < self.config.random_steps:
            low, high = self.envs.action_spec.bounds()
            shape = (self.config.num_envs, *self.envs.action_spec.shape)
            drawn = self.rng.uniform(low, high, shape).astype(self.envs.action_spec.dtype)
            return np.clip(drawn, low, high)
        return self.agent.act(self.seen)

    def _depart(self, action: NDArray) -> Callable[[], Any]:
        """Begin a step; call what is returned for its result."""
        if self.config.overlap:
            return self._hand.submit(self.envs.step, action).result
        return lambda: self.envs.step(action)

    def _learn(self) -> None:
        """Make the updates that the steps so far have earned, from steps that have landed."""
        config = self.config
        if self.steps < config.training_starts:
            return
        if self.agent.updates == 0:
            self.agent.calibrate(self.mix.sample(CALIBRATED_ON, config.agent.discount).obs)
        for _ in range(self._updates_due(config.num_envs)):
            self._told = self._threads.run(self._update)

    def _update(self) -> dict[str, float]:
        config = self.config
        batch = self.mix.sample(config.batch_size, config.agent.discount, config.n_step)
        return self.agent.update(batch)

    def _land(self, action: NDArray, result: Any) -> None:
        obs, reward, terminated, truncated, info = result
        self.obs = dict(self.envs.named(obs))
        ended = terminated | truncated
        self.ring.add(action, reward, terminated, truncated, self.obs, _lost(info))
        self.seen = self.frames.push(self.obs, ended)
        self.meter.add(reward, ended, info)
        self.steps += self.config.num_envs

    def evaluate(self) -> None:
        """Play on seeds that training never sees, and keep the best weights."""
        if self.config.eval_n_trajs == 0 or not self.keeper.is_first:
            return
        began = perf_counter()
        if self._judge is None:
            self._judge = make_envs(self.config, min(self.config.eval_n_trajs, 100))
        act = lambda seen: self.agent.act(seen, explore=False)  # noqa: E731
        first_seed = FIRST_SEED + self.config.seed * 1_000_000
        stack = stack_of(self.config.agent)
        self.last = evaluate(self._judge, act, self.config.eval_n_trajs, first_seed, stack)
        if self.last.score > self.best:
            self.best = self.last.score
            self.keeper.save_best(self)
        self._aside_s += perf_counter() - began
        self.report()

    def report(self) -> None:
        """Tell what is known now."""
        now, (then, steps, updates) = perf_counter(), self._mark
        told = {**self.meter.summary(), **self._told}
        if self.last is not None:
            told |= {"success": self.last.success_rate, "return": self.last.return_mean}
        told |= {"updates": self.agent.updates, "replay": len(self.ring)}
        elapsed = max(now - then, 1e-9)
        told |= {
            "clock/train_s": self._train_s(),
            "clock/wall_s": now - self._began,
            "clock/steps_per_s": (self.steps - steps) / elapsed,
            "clock/updates_per_s": (self.agent.updates - updates) / elapsed,
        }
        if self.steps > steps:
            self._mark = (now, self.steps, self.agent.updates)
        self.keeper.log.write(self.steps, told)
        self._listen(self.steps, told)

    def _periods(self) -> list[Every]:
        return [self._log_due, self._evaluation_due, self._checkpoint_due]

    def result(self) -> Result:
        """Sum up."""
        return Result(
            self.keeper.folder.path, self.steps, self.agent.updates, self.last, float(self.best),
            self._train_s(), perf_counter() - self._began,
        )  # fmt: skip

    def _train_s(self) -> float:
        return perf_counter() - self._began - self._aside_s

    def close(self) -> None:
        """Let go of workers and files."""
        self._hand.shutdown()
        self.envs.close()
        if self._judge is not None:
            self._judge.close()
        self.keeper.close()

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lost(info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Rows whose new observation does not follow from their action."""
    masks = [info[f"_{key}"] for key in LOST if f"_{key}" in info]
    return np.logical_or.reduce(masks) if masks else None
