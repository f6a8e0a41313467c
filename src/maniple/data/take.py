"""One episode of one row, while it is played."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.data.episode import Episode
from maniple.data.sim_states import SimStates


class Take:
    """Copies what a row sees, does and gets, until its episode is over."""

    def __init__(self, is_marked: bool = False) -> None:
        """Begin; `is_marked`: remember which steps a person chose."""
        self._obs: dict[str, list[NDArray]] = {}
        self._actions: list[NDArray] = []
        self._rewards: list[float] = []
        self._marks: list[bool] | None = [] if is_marked else None
        self.is_solved = False
        self.states: list[dict[str, Any]] = []
        """The simulator's states, one for each observation, where they are wanted."""

    def __len__(self) -> int:
        return len(self._actions)

    def see(self, obs: Any, row: int) -> None:
        """Remember what a row sees."""
        for name, array in obs.items():
            # With copy_obs=False the array is written over by the step after next.
            self._obs.setdefault(name, []).append(np.array(array[row]))

    def add(
        self,
        obs: Any,
        row: int,
        action: NDArray,
        reward: float,
        success: bool,
        is_person: bool = False,
    ) -> None:
        """Remember an action, and what followed from it."""
        self.see(obs, row)
        self._actions.append(action)
        self._rewards.append(float(reward))
        self.is_solved |= success
        if self._marks is not None:
            self._marks.append(is_person)

    def episode(self, terminated: bool, truncated: bool, seed: int, task: str) -> Episode:
        """Return what was remembered as an episode."""
        return Episode(
            {name: np.stack(rows) for name, rows in self._obs.items()},
            np.stack(self._actions),
            np.array(self._rewards, np.float32),
            terminated,
            truncated,
            self.is_solved,
            seed,
            str(task),
            None if self._marks is None else np.array(self._marks, np.bool_),
            SimStates.of(self.states) if self.states else None,
        )
