"""Play rounds: one episode in every row, all of the same length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.agents.agent import ActionRange
from maniple.core.faults import lost_rows
from maniple.data.episode import Episode
from maniple.world.adapter import StudentAdapter

Watch = Callable[[Mapping[str, NDArray], NDArray, Mapping[str, NDArray]], None]
"""Told of every step: what was seen, what was done, what was seen then."""


class Round(NamedTuple):
    """What all rows saw, did and got; time is the first axis, rows the second."""

    obs: dict[str, NDArray]
    """(T + 1, rows, ...)."""
    action: NDArray
    """(T, rows, ...), from -1 to 1 whatever the bounds of the environment."""
    reward: NDArray
    """(T, rows)."""
    solved: NDArray[np.bool_]
    """(T + 1, rows)."""
    whole: NDArray[np.bool_]
    """(rows,): False where a simulator was lost on the way."""
    seed: int

    def episodes(self) -> Iterator[tuple[Episode, NDArray[np.bool_]]]:
        """Take it apart into episodes, each with the frames that show the solved task."""
        for row in np.flatnonzero(self.whole).tolist():
            solved = self.solved[:, row]
            obs = {name: array[:, row] for name, array in self.obs.items()}
            yield (
                Episode(obs, self.action[:, row], self.reward[:, row].astype(np.float32),
                        False, True, bool(solved.any()), self.seed + row),
                solved,
            )  # fmt: skip


def play(
    envs: Any,
    player: StudentAdapter,
    steps: int,
    seed: int,
    names: tuple[str, ...],
    watch: Watch | None = None,
) -> Round:
    """Reset all rows from `seed` on and play `steps` actions in each.

    Args:
        envs: A vector environment with autoreset disabled whose episodes are long enough.
        names: Observations that are kept.
    """
    rows = envs.num_envs
    obs, _ = envs.reset(seed=seed)
    player.reset(np.ones(rows, np.bool_))
    seen = dict(envs.named(obs))
    frames = {name: np.empty((steps + 1, rows, *seen[name].shape[1:]), seen[name].dtype)
              for name in names}  # fmt: skip
    scale = ActionRange(envs.action_spec)
    actions = np.empty((steps, rows, *envs.action_spec.shape), np.float32)
    reward = np.zeros((steps, rows), np.float32)
    solved, whole = np.zeros((steps + 1, rows), np.bool_), np.ones(rows, np.bool_)
    for name in names:
        frames[name][0] = seen[name]
    for step in range(steps):
        action = np.asarray(player.act(seen))
        actions[step] = scale.from_env(action).reshape(rows, *envs.action_spec.shape)
        obs, reward[step], _, _, info = envs.step(action.astype(envs.action_spec.dtype))
        before, seen = seen, dict(envs.named(obs))
        for name in names:
            frames[name][step + 1] = seen[name]
        if "success" in info:
            solved[step + 1] = info["success"]
        if (lost := lost_rows(info)) is not None:
            whole &= ~lost
        if watch is not None:
            watch(before, actions[step], seen)
    return Round(frames, actions, reward, solved, whole, seed)
