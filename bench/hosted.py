"""Environments to be hosted: three that compute nothing, so that only transport is left."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from numpy.typing import NDArray

PICTURE = (256, 256, 3)


class Floats(gymnasium.Env):
    """60 numbers."""

    action_space = Box(-1.0, 1.0, (6,), np.float32)
    observation_space = Box(-10.0, 10.0, (60,), np.float32)

    def __init__(self) -> None:
        self._obs = np.zeros(60, np.float32)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Return the numbers."""
        return self._obs, {}

    def step(self, action: NDArray) -> tuple[Any, float, bool, bool, dict]:
        """Return the same numbers."""
        return self._obs, 0.0, False, False, {}


class Pictures(gymnasium.Env):
    """Two cameras, in arrays of the environment's own: whoever hosts it copies them."""

    action_space = Floats.action_space
    observation_space = Dict({name: Box(0, 255, PICTURE, np.uint8) for name in ("left", "right")})
    cameras: ClassVar = ("left", "right")

    def __init__(self) -> None:
        self._own = {name: np.zeros(PICTURE, np.uint8) for name in self.cameras}
        self._count = 0

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        """Return both pictures."""
        return self._draw(), {}

    def step(self, action: NDArray) -> tuple[Any, float, bool, bool, dict]:
        """Change a pixel."""
        return self._draw(), 0.0, False, False, {}

    def _draw(self) -> dict[str, NDArray]:
        self._count = (self._count + 1) % 256
        arrays = self._canvas()
        for picture in arrays.values():
            picture[0, 0, 0] = self._count
        return arrays

    def _canvas(self) -> dict[str, NDArray]:
        return self._own


class LentPictures(Pictures):
    """The same cameras, drawn into the host's memory where the host lends it."""

    observation_arrays: dict[str, NDArray] | None = None

    def _canvas(self) -> dict[str, NDArray]:
        return self._own if self.observation_arrays is None else self.observation_arrays


def lerobot() -> Any:
    """LeRobot-v0 as one plain Gymnasium environment."""
    from maniple.cli.bench.peers import single

    return single("LeRobot-v0")
