"""Noise that plays without looking, and noise on what somebody else does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from maniple.core.random_actions import random_actions
from maniple.core.spec import ArraySpec
from maniple.world.adapter import StudentAdapter


class UniformNoise:
    """A new random action at every step."""

    def __init__(self, spec: ArraySpec, rows: int, rng: np.random.Generator) -> None:
        self._spec, self._rows, self._rng = spec, rows, rng

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Nothing is kept between steps."""

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Draw an action for every row."""
        return random_actions(self._spec, self._rows, self._rng)


class PinkNoise:
    """Actions whose slow changes are the largest: arms get somewhere instead of trembling."""

    def __init__(self, spec: ArraySpec, rows: int, steps: int, rng: np.random.Generator) -> None:
        low, high = (np.clip(bound, -1e6, 1e6) for bound in spec.bounds())
        self._low, self._high, self._spec = low, high, spec
        noise = pink_noise(rng, rows, steps, spec.size).reshape(steps, rows, *spec.shape)
        self._actions = (high + low) / 2 + (high - low) / 2 * noise
        self._at = 0

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Begin the noise anew."""
        self._at = 0

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the next action of every row."""
        action = np.clip(self._actions[self._at % len(self._actions)], self._low, self._high)
        self._at += 1
        return action.astype(self._spec.dtype)


class NoisyPlayer:
    """Somebody else, with noise on every action: how much is each row's own."""

    def __init__(
        self, player: StudentAdapter, spec: ArraySpec, strength: NDArray, rng: np.random.Generator
    ) -> None:
        """Take a player for all rows and the noise's deviation in each, of half the range."""
        self._player, self._spec, self._rng = player, spec, rng
        low, high = (np.clip(bound, -1e6, 1e6) for bound in spec.bounds())
        half = (high - low) / 2
        self._strength = strength.reshape(-1, *[1] * len(spec.shape)) * half

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over."""
        self._player.reset(rows)

    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the other's action of every row, and noise."""
        action = np.asarray(self._player.act(obs))
        noise = self._strength * self._rng.normal(size=action.shape)
        return np.clip(action + noise, *self._spec.bounds()).astype(self._spec.dtype)


def pink_noise(rng: np.random.Generator, rows: int, steps: int, size: int, scale: float = 0.7):
    """Draw (steps, rows, size) from -1 to 1 with power falling as 1/frequency."""
    # Twice as long as needed: a Fourier series repeats, and half of it does not.
    frequency = np.fft.rfftfreq(2 * max(steps, 2))
    frequency[0] = frequency[1]
    spectrum = rng.normal(size=(rows, size, len(frequency), 2)) @ [1, 1j]
    noise = np.fft.irfft(spectrum / np.sqrt(frequency), axis=-1)[..., :steps]
    noise = noise / noise.std(axis=-1, keepdims=True).mean()
    return np.clip(scale * noise, -1, 1).transpose(2, 0, 1).astype(np.float32)
