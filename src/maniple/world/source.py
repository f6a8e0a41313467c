"""Where a teacher's episodes come from: played now, or a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.episode import Episode
from maniple.data.sequence_buffer import SequenceBuffer, kept
from maniple.run.ranks import Ranks
from maniple.world.config import WorldConfig
from maniple.world.episode_cache import load_cached
from maniple.world.make import HELD_OUT_SEED, make_envs, make_player, round_seed, state_names
from maniple.world.rounds import play
from maniple.world.shapes import Shapes

Played = Iterator[tuple[Episode, NDArray[np.bool_] | None]]
HELD_OUT_PART = 10
"""One episode in so many of a dataset is only for measuring."""
HELD_OUT_ROUND = 10_000_000
"""Number of the first held-out round; training never gets that far."""


class LiveSource:
    """Plays in our environments; round number k is the same every time."""

    def __init__(self, config: WorldConfig) -> None:
        self._config, self.envs = config, make_envs(config)
        self.layout, self.action = self.envs.layout, self.envs.action_spec
        names = state_names(self.layout, config.environment)
        self.shapes = Shapes.of(self.layout, self.action, names)

    def round(self, episode: int) -> Played:
        """Play one round."""
        return self._play(episode, round_seed(self._config, episode))

    def held_out(self) -> SequenceBuffer:
        """Play episodes that are only for measuring, the same for every seed and rank."""
        config, rows = self._config, self.envs.num_envs
        rounds = max(1, config.training.held_out)
        buffer = self._buffer(rounds * rows * (config.training.steps_per_episode + 1))
        for number in range(rounds):
            for episode, solved in self._play(
                HELD_OUT_ROUND + number, HELD_OUT_SEED + number * rows
            ):
                buffer.add(episode, 0, solved)
        return buffer

    def _play(self, number: int, seed: int) -> Played:
        player = make_player(self._config, self.envs, number)
        steps = self._config.training.steps_per_episode
        return play(self.envs, player, steps, seed, self.shapes.names).episodes()

    def _buffer(self, frames: int) -> SequenceBuffer:
        return SequenceBuffer(kept(self.layout, self.shapes.names), self.action, frames)

    def close(self) -> None:
        """Let go of the environments."""
        self.envs.close()


class DatasetSource:
    """Hands out the episodes of a LeRobot dataset once, each rank its own."""

    def __init__(self, config: WorldConfig, ranks: Ranks) -> None:
        assert config.teacher.dataset is not None
        size = config.environment.image_size
        found = load_cached(config.teacher.dataset, config.teacher.cache, size)
        if len(found) < 2 * ranks.world_size:
            raise BadConfig(
                f"{config.teacher.dataset} has {len(found)} episodes; {2 * ranks.world_size} are "
                "the least: one to learn from and one to measure with, for each rank."
            )
        self.layout, self.action = _described(found[0])
        self._check_size(config, found)
        names = state_names(self.layout, config.environment)
        self.shapes = Shapes.of(self.layout, self.action, names)
        self._held_out = found[:: max(2, min(HELD_OUT_PART, len(found) // 2))]
        kept_out = {id(episode) for episode in self._held_out}
        own = [episode for episode in found if id(episode) not in kept_out]
        self._waiting = own[ranks.rank :: ranks.world_size]

    def _check_size(self, config: WorldConfig, found: list[Episode]) -> None:
        length = config.training.sequence_length
        if max(len(episode) for episode in found) < length:
            raise BadConfig(
                f"The longest episode of {config.teacher.dataset} is shorter than "
                f"--sequence-length {length}."
            )

    def round(self, episode: int) -> Played:
        """Hand out everything in the first round, and nothing after it."""
        return ((e, None) for e in (self._waiting if episode == 0 else ()))

    def held_out(self) -> SequenceBuffer:
        """Return the episodes that are only for measuring."""
        frames = sum(len(e) + 1 for e in self._held_out)
        buffer = SequenceBuffer(kept(self.layout, self.shapes.names), self.action, frames)
        for episode in self._held_out:
            buffer.add(episode)
        return buffer

    def close(self) -> None:
        """Nothing is held."""


def make_source(config: WorldConfig, ranks: Ranks) -> Any:
    """Open the dataset that is named, or environments."""
    if config.teacher.dataset is not None:
        return DatasetSource(config, ranks)
    return LiveSource(config)


def _described(episode: Episode) -> tuple[Layout, ArraySpec]:
    """Describe what an episode holds."""
    specs = {}
    for name, array in episode.obs.items():
        is_picture = array.dtype == np.uint8 and array.ndim == 4 and array.shape[-1] == 3
        specs[name] = ArraySpec(array.shape[1:], array.dtype, image="rgb" if is_picture else None)
    return Layout(specs), ArraySpec(episode.action.shape[1:], np.dtype(np.float32), -1.0, 1.0)
