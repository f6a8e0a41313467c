"""Follow the returns and successes of the episodes that training plays."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.faults import lost_rows, paused_rows, waiting_after

KEPT = 100


class EpisodeStats:
    """Sums up every row's episode, and remembers the last hundred that ended."""

    def __init__(self, num_envs: int) -> None:
        self._sum = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)
        self._won = np.zeros(num_envs, np.bool_)
        self._waiting = np.zeros(num_envs, np.bool_)
        self._ended: deque[tuple[float, int, bool]] = deque(maxlen=KEPT)
        self.episodes = 0

    def add(self, reward: NDArray, ended: NDArray[np.bool_], info: Mapping[str, Any]) -> None:
        """Note one vector step."""
        paused = paused_rows(info)
        playing = ~self._waiting if paused is None else ~(self._waiting | paused)
        self._sum += np.where(playing, reward, 0.0)
        self._length += playing
        if "success" in info:
            self._won |= np.asarray(info["success"], np.bool_) & playing
        for row in np.flatnonzero(ended & playing).tolist():
            entry = float(self._sum[row]), int(self._length[row]), bool(self._won[row])
            self._ended.append(entry)
            self.episodes += 1
        over = ended | self._waiting
        self._sum[over], self._length[over], self._won[over] = 0.0, 0, False
        self._waiting = waiting_after(ended, self._waiting, lost_rows(info))

    def summary(self) -> dict[str, float]:
        """Means over the last episodes; nothing before the first one ended."""
        if not self._ended:
            return {}
        returns, lengths, wins = zip(*self._ended, strict=True)
        return {
            "train_return": float(np.mean(returns)),
            "train_length": float(np.mean(lengths)),
            "train_success": float(np.mean(wins)),
        }

    def state(self) -> dict[str, Any]:
        """Return everything as plain lists."""
        return {
            "sum": self._sum.tolist(),
            "length": self._length.tolist(),
            "won": self._won.tolist(),
            "waiting": self._waiting.tolist(),
            "ended": [list(e) for e in self._ended],
            "episodes": self.episodes,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._sum = np.array(state["sum"])
        self._length = np.array(state["length"], np.int64)
        self._won = np.array(state["won"], np.bool_)
        self._waiting = np.array(state["waiting"], np.bool_)
        self.load_ended(state)

    def load_ended(self, state: Mapping[str, Any]) -> None:
        """Go on after the episodes that ended, with new ones in all rows."""
        self._ended = deque([(e[0], e[1], e[2]) for e in state["ended"]], maxlen=KEPT)
        self.episodes = state["episodes"]
