"""Learn from the steps that actors send, and send weights back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.learn.cluster import Cluster, ClusterConfig
from maniple.learn.config import TrainConfig
from maniple.learn.make import device_of, make_envs, make_run
from maniple.learn.off_policy import OffPolicyLearner
from maniple.learn.parcel import FIELDS, read_parcel
from maniple.run.learner import State
from maniple.run.ranks import Ranks
from maniple.run.run import Listen, Result
from maniple.run.stop import Stop
from maniple.run.when import Every

PUBLISH_EVERY = 20
"""Updates between two sets of weights."""
MOST_UPDATES = 40
"""Updates between two looks into the queue."""


def train(
    config: TrainConfig,
    cluster_config: ClusterConfig,
    run_dir: Path,
    resume: bool = False,
    listen: Listen = lambda step, metrics: None,
    stop: Stop | None = None,
) -> Result:
    """Learn until the end that the config names; the Ray head does not outlive the learner."""
    ranks = Ranks(device_of(config.machine.device))
    with closing(make_envs(config, 1)) as envs:
        layout, action = envs.layout, envs.action_spec
    learner = OffPolicyLearner(config, layout, action, 1, ranks)
    with (
        make_run(config, run_dir, ranks, resume, listen, stop) as run,
        closing(Cluster(cluster_config, run_dir)) as cluster,
    ):
        exchange = Exchange(cluster, learner)
        run.start(learner, exchange=exchange)
        cluster.open(config.flat())
        exchange.publish()
        while run.goes_on():
            new = exchange.receive()
            made = learner.update(new, MOST_UPDATES)
            exchange.publish_if_due()
            if not new and not made:
                sleep(0.02)
            run.tick()
        result = run.finish()
        cluster.call("finish")
        return result


class Exchange:
    """Brings the actors' steps into the replay, and the learner's weights to the actors."""

    def __init__(self, cluster: Cluster, learner: OffPolicyLearner) -> None:
        self._cluster, self._learner = cluster, learner
        self._publish_due = Every(PUBLISH_EVERY)
        self._actor_metrics: dict[str, float] = {}
        self._bad_parcels = 0

    def receive(self) -> int:
        """Take in what actors sent, unless updates for earlier steps are owed; count the steps."""
        self._cluster.beat()
        if self._learner.owed > MOST_UPDATES:
            return 0
        new = 0
        for parcel in self._cluster.call("pull", 8):
            try:
                steps = read_parcel(parcel, self._learner.replay.layout, self._learner.action)
            except BadConfig:
                # Whoever holds the token may send rubbish; the learner goes on without it.
                self._bad_parcels += 1
                continue
            self._remember(steps.arrays)
            new += steps.count
            self._actor_metrics = steps.metrics
        self._learner.steps += new
        return new

    def _remember(self, arrays: dict[str, NDArray]) -> None:
        replay = self._learner.replay
        for row in range(arrays["reward"].shape[1]):
            obs = {name: arrays[f"obs.{name}"][:, row] for name in replay.layout}
            replay.extend(obs, *(arrays[name][:, row] for name in FIELDS))

    def publish_if_due(self) -> None:
        """Send the weights every few updates."""
        if self._publish_due(self._learner.counters().updates):
            self.publish()

    def publish(self) -> None:
        """Send the weights, if anything has been learned."""
        from safetensors.numpy import save

        updates = self._learner.counters().updates
        if updates:
            weights = {n: np.asarray(a, order="C") for n, a in self._learner.weights().items()}
            self._cluster.call("publish", updates, save(weights))

    def metrics(self) -> dict[str, float]:
        """What the actors report, and how full the queue is."""
        counts: dict[str, Any] = self._cluster.call("stats")
        steps, updates, _ = self._learner.counters()
        queue = {f"post/{k}": float(v) for k, v in counts.items()}
        queue["post/bad_parcels"] = float(self._bad_parcels)
        return self._actor_metrics | queue | {"utd": updates / max(steps, 1)}

    def state(self) -> State:
        """What is under way stays with the cluster's head."""
        return {}

    def load_state(self, state: State) -> None:
        """There is nothing to restore."""
