"""Play with the newest weights and send the steps to the learner."""

from __future__ import annotations

import json
import secrets
from time import monotonic, sleep
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.faults import lost_rows, waiting_after
from maniple.core.random_actions import random_actions
from maniple.data.frame_stack import FrameStack
from maniple.learn.cluster import Cluster, ClusterConfig, ClusterError
from maniple.learn.config import TrainConfig, config_of
from maniple.learn.episode_stats import EpisodeStats
from maniple.learn.make import make_agent, make_training_envs, stack_of
from maniple.learn.parcel import FIELDS
from maniple.run.stop import Stop


class Actor:
    """Environments, a copy of the policy, and a place to send to."""

    def __init__(self, config: TrainConfig, cluster: ClusterConfig) -> None:
        import torch

        torch.set_num_threads(1)
        self.name = secrets.token_hex(8)
        self.cluster = Cluster(cluster)
        # What is learned is the learner's choice; how many play here, and how, is ours.
        here = config.machine
        self.config = config_of(self.cluster.meet()).replace(
            num_envs=here.num_envs, engine=here.engine, workers=here.workers
        )
        self._seed = int(self.name[:7], 16)
        self.envs = make_training_envs(self.config, here.num_envs)
        layout, action = self.envs.layout, self.envs.action_spec
        self.agent = make_agent(self.config, layout, action, self._seed)
        self.frames = FrameStack(layout, stack_of(self.config.agent))
        self.stats = EpisodeStats(here.num_envs)
        self.steps = 0
        self._version = 0
        self._number = 0
        self._waiting = np.zeros(here.num_envs, np.bool_)
        self._rng = np.random.default_rng(self._seed)

    def run(self, stop: Stop) -> int:
        """Play until the learner is done, or `stop` says so; return the steps."""
        obs, _ = self.envs.reset(seed=self._seed)
        self._obs = dict(self.envs.named(obs))
        self._seen = self.frames.begin(self._obs)
        is_wanted = True
        while is_wanted and not stop.reason(self.steps):
            self._refresh()
            is_wanted = self._send(self._play())
        return self.steps

    def _play(self) -> dict[str, NDArray]:
        """Make some vector steps; return them as arrays (T, rows, ...)."""
        obs = {name: [array.copy()] for name, array in self._obs.items()}
        rows: dict[str, list[NDArray]] = {name: [] for name in FIELDS}
        for _ in range(self.cluster.config.push_steps):
            action = self._act()
            seen, reward, terminated, truncated, info = self.envs.step(action)
            self._obs = dict(self.envs.named(seen))
            ended = terminated | truncated
            lost = lost_rows(info)
            self._seen = self.frames.push(self._obs, ended, lost)
            self.stats.add(reward, ended, info)
            usable = ~self._waiting if lost is None else ~(self._waiting | lost)
            step = (action, reward.astype(np.float32), terminated, ended, usable)
            for name, value in zip(rows, step, strict=True):
                rows[name].append(np.array(value))
            for name, array in self._obs.items():
                obs[name].append(array.copy())
            self._waiting = waiting_after(ended, self._waiting, lost)
            self.steps += self.envs.num_envs
        arrays = {f"obs.{name}": np.stack(frames) for name, frames in obs.items()}
        return arrays | {name: np.stack(values) for name, values in rows.items()}

    def _act(self) -> NDArray:
        if self._version == 0:
            return random_actions(self.envs.action_spec, self.envs.num_envs, self._rng)
        return self.agent.act(self._seen)

    def _refresh(self) -> None:
        from safetensors.numpy import load

        found = self._patiently("weights", self._version)
        if found is not None:
            self._version, blob = found
            self.agent.load_weights(load(blob))

    def _send(self, arrays: dict[str, NDArray]) -> bool:
        from safetensors.numpy import save

        steps = arrays["reward"].size
        about = json.dumps({"version": self._version} | self.stats.summary())
        blob = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
        self._number += 1
        return self._patiently("push", self.name, self._number, steps, blob, about)

    def _patiently(self, method: str, *args: Any) -> Any:
        """Ask again for a while: the head may be busy or just coming back."""
        deadline = monotonic() + self.cluster.config.patience_s / 10
        while True:
            try:
                return self.cluster.call(method, *args)
            except ClusterError:
                if monotonic() > deadline:
                    raise
                sleep(0.5)

    def close(self) -> None:
        """Leave."""
        self.envs.close()
        self.cluster.close()
