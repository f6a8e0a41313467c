"""Learn from the steps that actors send, and send weights back."""

from __future__ import annotations

import json
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

from maniple.core.errors import BadConfig
from maniple.data.mix import Mix, ring_of
from maniple.data.ring import Ring
from maniple.learn.cluster import Cluster, ClusterConfig
from maniple.learn.config import TrainConfig, kind_of
from maniple.learn.course import Course, Listen, Result, Snapshot
from maniple.learn.demos import demonstrations
from maniple.learn.make import make_agent, make_envs, stack_of
from maniple.learn.pupil import Pupil
from maniple.run.folder import plain
from maniple.run.when import Every, Until

PUBLISH_EVERY = 20
"""Updates between two sets of weights."""
MOST_UPDATES = 40
"""Updates between two looks into the post."""


class Learner:
    """A pupil whose replay is filled over the network."""

    def __init__(
        self,
        config: TrainConfig,
        cluster: ClusterConfig,
        run_dir: Path,
        resume: bool,
        listen: Listen,
    ) -> None:
        self.config = config
        envs = make_envs(config, 1)
        layout, action = envs.layout, envs.action_spec
        envs.close()
        stack = stack_of(config.agent)
        self.agent = make_agent(config, layout, action, config.seed)
        self.ring = Ring(
            layout, action, 1, config.replay_buffer_capacity, config.seed, stack,
            config.replay_folder,
        )  # fmt: skip
        shown = demonstrations(config)
        demos = ring_of(shown, layout, action, config.seed + 1, stack) if shown else None
        self.pupil = Pupil(config, self.agent, Mix(self.ring, demos, config.demo_share))
        self.steps = 0
        self._news: dict[str, float] = {}
        self._publish_due = Every(PUBLISH_EVERY)
        self.course = Course(config, run_dir, resume, listen)
        self.cluster = Cluster(cluster, run_dir)
        found = self.course.restore(self.ring) if resume else None
        if found is not None:
            self.pupil.restore(*found)
            self.steps = found[1]["steps"]
        self.cluster.open({"algorithm": kind_of(config.agent), **plain(config)})
        if self.agent.updates:
            self._publish()

    def run(self, until: Until) -> Result:
        """Take in, learn, send out; and whatever else is due."""
        while until(self.steps):
            new = self._take_in()
            made = self.pupil.learn(self.steps, new, MOST_UPDATES)
            if self._publish_due(self.agent.updates):
                self._publish()
            if not new and not made:
                sleep(0.02)
            self.cluster.beat()
            if self.course.attend(self):
                break
        result = self.course.finish(self)
        self.cluster.call("finish")
        return result

    def _take_in(self) -> int:
        """Move what actors sent into the replay, unless updates for earlier steps are owed."""
        if self.pupil.owed > MOST_UPDATES:
            return 0
        new = 0
        for *_, steps, blob, about in self.cluster.call("pull", 8):
            self._remember(blob)
            new += steps
            self._news = {k: v for k, v in json.loads(about).items() if k != "version"}
        self.steps += new
        return new

    def _remember(self, blob: bytes) -> None:
        from safetensors.numpy import load

        arrays = load(blob)
        missing = self.ring.arrays.keys() - arrays.keys() - {"age"}
        if missing:
            raise BadConfig(f"An actor sent steps without {sorted(missing)[0]!r}.")
        for row in range(arrays["reward"].shape[1]):
            obs = {name: arrays[f"obs.{name}"][:, row] for name in self.ring.layout}
            rest = [
                arrays[n][:, row] for n in ("action", "reward", "terminated", "ended", "usable")
            ]
            self.ring.extend(obs, *rest)

    def _publish(self) -> None:
        from safetensors.numpy import save

        weights = {n: np.asarray(a, order="C") for n, a in self.agent.weights().items()}
        self.cluster.call("publish", self.agent.updates, save(weights))

    def told(self) -> dict[str, float]:
        """Return what is known besides evaluations."""
        counts = {f"post/{k}": float(v) for k, v in self.cluster.call("stats").items()}
        ratio = self.agent.updates / max(self.steps, 1)
        return self._news | self.pupil.told | counts | {"utd": ratio}

    def snapshot(self) -> Snapshot:
        """Return everything but the replay that going on needs."""
        arrays, state = self.pupil.snapshot()
        return arrays, state | {"steps": self.steps}

    def close(self, is_done: bool) -> None:
        """Leave; the head stays for another learner unless this one is done."""
        self.course.close()
        self.cluster.close(end_head=is_done)


def learn_from_actors(
    config: TrainConfig,
    cluster: ClusterConfig,
    run_dir: Path,
    resume: bool,
    listen: Listen,
    until: Until,
) -> Result:
    """Run a learner to its end; whatever happens, its head does not outlive it."""
    learner: Any = Learner(config, cluster, run_dir, resume, listen)
    try:
        return learner.run(until)
    finally:
        learner.close(is_done=True)
