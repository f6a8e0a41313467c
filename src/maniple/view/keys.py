"""What the keys that a person presses ask for at a moment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

HOLD_S = 0.2
"""How long a key acts: a little longer than the pause between the repeats of a held key."""

LONG_EPISODE = 1500
"""Steps after which an episode of a person is truncated: a minute at 25 per second."""

GRIP = "grip"
MOVES: dict[str, tuple[float, float, float]] = {
    "away": (1.0, 0.0, 0.0),
    "back": (-1.0, 0.0, 0.0),
    "left": (0.0, 1.0, 0.0),
    "right": (0.0, -1.0, 0.0),
    "up": (0.0, 0.0, 1.0),
    "down": (0.0, 0.0, -1.0),
}
"""Directions in which the fingertip is moved (world x y z)."""


class Keys:
    """Directions that are held, and whether the gripper is open.

    Args:
        names: What each key means: a name of MOVES, or GRIP. None: keys are named so themselves.
        hold_s: How long a held key acts after its last repeat.
        taps: A first press moves for one step only, so that a person can be precise; without,
            every press acts for `hold_s`.
    """

    def __init__(
        self,
        names: Mapping[int, str] | None = None,
        hold_s: float = HOLD_S,
        taps: bool = False,
    ) -> None:
        self._names = names
        self._hold_s, self._taps = hold_s, taps
        self._pressed_s: dict[str, float] = {}
        self._until_s: dict[str, float] = {}
        self._tapped: set[str] = set()
        self._unanswered_s: list[float] = []
        self.is_open = True

    def press(self, key: int | str, now_s: float) -> None:
        """Remember that a key was pressed, or repeats because it is held."""
        name = str(key) if self._names is None else self._names.get(int(key), "")
        if name == GRIP:
            self.is_open = not self.is_open
            self._unanswered_s.append(now_s)
        if name not in MOVES:
            return
        is_held = now_s - self._pressed_s.get(name, -np.inf) < self._hold_s
        self._pressed_s[name] = now_s
        self._unanswered_s.append(now_s)
        if self._taps and not is_held:
            self._tapped.add(name)
        else:
            self._until_s[name] = now_s + self._hold_s

    def step(self, now_s: float) -> NDArray[np.float64]:
        """Return the direction in which the keys move now, each number from -1 to 1."""
        held = {name for name, until_s in self._until_s.items() if now_s < until_s}
        total = np.zeros(3)
        for name in held | self._tapped:
            total += MOVES[name]
        self._tapped.clear()
        return np.clip(total, -1.0, 1.0)

    def action(self, now_s: float) -> NDArray[np.float32]:
        """Return the fingertip's step and the gripper, each from -1 to 1."""
        return np.array([*self.step(now_s), 1.0 if self.is_open else -1.0], np.float32)

    def take_waits(self, now_s: float) -> list[float]:
        """Return how long ago each press was that no step has answered yet (s)."""
        waits = [now_s - pressed_s for pressed_s in self._unanswered_s]
        self._unanswered_s.clear()
        return waits

    def release(self) -> None:
        """Let go of every key."""
        self._until_s.clear()
        self._tapped.clear()
        self._unanswered_s.clear()
