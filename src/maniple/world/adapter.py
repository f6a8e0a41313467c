"""What plays in a phase: noise, an expert, an explorer of ours, or anybody's policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class StudentAdapter(Protocol):
    """Acts for all rows at once; a VLA, a checkpoint, an expert and noise all fit."""

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the next action of every row, (rows, ...).

        Args:
            obs: Arrays (rows, ...) as the vector environment gives them.
        """
        ...

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over in rows that begin an episode."""


class Mixed:
    """Several adapters side by side, each in its own rows."""

    def __init__(self, parts: list[tuple[StudentAdapter, NDArray[np.bool_]]]) -> None:
        """Take pairs of an adapter for all rows and the rows in which it is listened to."""
        self._parts = parts

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over."""
        for part, _ in self._parts:
            part.reset(rows)

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Let every adapter act, and take its own rows."""
        actions = [np.asarray(part.act(obs)) for part, _ in self._parts]
        chosen = actions[0].copy()
        for action, (_, rows) in zip(actions, self._parts, strict=True):
            chosen[rows] = action[rows]
        return chosen


class Relay:
    """One leads every row somewhere, and from a step of its own on another plays there."""

    def __init__(self, first: StudentAdapter, then: StudentAdapter, since: NDArray) -> None:
        """Take two adapters for all rows, and the step from which each row is the second's."""
        self._first, self._then, self._since = first, then, since
        self._at = 0

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over; all rows begin together."""
        self._first.reset(rows)
        self._then.reset(rows)
        self._at = 0

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Let both act, and take what each row is told."""
        goes_on = self._at < self._since
        self._at += 1
        first, then = np.asarray(self._first.act(obs)), np.asarray(self._then.act(obs))
        return np.where(goes_on.reshape(-1, *[1] * (first.ndim - 1)), first, then)
