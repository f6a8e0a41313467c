"""Disturb what passes between a policy and its environment: actions, numbers, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.seeds import Draws, SeedTree
from maniple.envs.motion import Motion
from maniple.sim.state import State
from maniple.sim.userdata import add_note

LATE = "perturb.late_actions"
MOST_NUMBERS = 32
"""Numbers of an action that can be kept until they arrive."""
KINDS = ("action_delay", "action_noise", "observation_noise", "pixel_noise")
"""Perturbations that are no part of the world."""


def add_late_actions(spec: mujoco.MjSpec, steps: int) -> None:
    """Let rows keep the actions that are on their way, as a part of their state."""
    add_note(spec, LATE, steps * MOST_NUMBERS)


class Signals:
    """Noise of a step depends on the episode's seed and the step's number alone."""

    def __init__(
        self, how: Mapping[str, float], state: State, seeds: SeedTree, motion: Motion
    ) -> None:
        self._how, self._state, self._seeds, self._motion = dict(how), state, seeds, motion
        self._rows = np.arange(state.rows)
        self._delay = int(how.get("action_delay", 0))
        spec = motion.control.action
        self._low, self._high = spec.bounds()
        half = (self._high - self._low) / 2
        self._half = np.where(np.isfinite(half), half, 1.0)
        if self._delay and spec.size > MOST_NUMBERS:
            raise BadConfig(f"perturb 'action_delay' takes actions of {MOST_NUMBERS} numbers.")

    def act(self, actions: NDArray, active: NDArray[np.bool_] | None, elapsed: NDArray) -> None:
        """Let rows carry out what arrives of their actions."""
        sigma = self._how.get("action_noise", 0.0)
        if sigma:
            noise = self._draws("action_noise", elapsed).normal(sigma * self._half)
            noisy = np.clip(actions + noise, self._low, self._high)
            actions = noisy.astype(actions.dtype)
        if not self._delay:
            self._motion.step(actions, active)
            return
        moving = np.ones(len(elapsed), np.bool_) if active is None else active
        arrived, waits = self._swap(actions, moving, elapsed)
        if (moving & waits).any():
            self._motion.rest(moving & waits)
        if (moving & ~waits).any():
            self._motion.step(arrived, moving & ~waits)

    def _swap(
        self, actions: NDArray, moving: NDArray[np.bool_], elapsed: NDArray
    ) -> tuple[NDArray, NDArray[np.bool_]]:
        """Keep new actions of rows that move; return those that are due, and who has none yet."""
        shape = (len(elapsed), self._delay, MOST_NUMBERS)
        kept = self._state.note(LATE).reshape(shape, copy=False)
        at, flat = elapsed % self._delay, actions.reshape(len(actions), -1)
        due = kept[self._rows, at, : flat.shape[1]].astype(actions.dtype)
        waits = elapsed < self._delay
        kept[self._rows[moving], at[moving], : flat.shape[1]] = flat[moving]
        # What was never sent would be no pose: rows that wait do not carry it out.
        return np.where(waits[:, None], flat, due).reshape(actions.shape), waits

    def observed(self, values: Sequence[NDArray], elapsed: NDArray) -> list[NDArray]:
        """Return the observations as they are seen."""
        sigma = self._how.get("observation_noise", 0.0)
        if not sigma:
            return list(values)
        rng = self._draws("observation_noise", elapsed)
        return [
            value + rng.normal(sigma, value.shape[1:]) if value.dtype.kind == "f" else value
            for value in values
        ]

    def spoil(self, pictures: Sequence[NDArray], rows: NDArray[np.intp], elapsed: NDArray) -> None:
        """Add noise to pictures that were just drawn of some rows, in place."""
        sigma = self._how.get("pixel_noise", 0.0)
        if not sigma or not len(rows):
            return
        rng = self._draws("pixel_noise", elapsed).of(rows)
        for picture in pictures:
            noisy = picture[rows] + rng.normal(sigma, picture.shape[1:])
            picture[rows] = np.clip(np.rint(noisy), 0, 255).astype(picture.dtype)

    def _draws(self, kind: str, elapsed: NDArray) -> Draws:
        return self._seeds.draws(self._rows).branch(kind).branch(elapsed)
