"""Put a fruit into a bowl, in each of the three places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.closeness import near
from maniple.envs.piper.places import (
    ARM_BOUNDS,
    ARM_MEANINGS,
    POSE_BOUNDS,
    OnDog,
    OnWheels,
    PiperTask,
)
from maniple.envs.piper.things import (
    APPLE_R_M,
    BANANA_R_M,
    BOWL_HIGH_M,
    BOWL_R_M,
    add_apple,
    add_banana,
    add_bowl,
)
from maniple.envs.task import Bounds
from maniple.sim.rotation import yaw_quat
from maniple.sim.state import State

FRUIT_LOW, FRUIT_HIGH = np.array([0.30, 0.05]), np.array([0.42, 0.17])
BOWL_LOW, BOWL_HIGH = np.array([0.32, -0.16]), np.array([0.40, -0.10])
"""Where they may stand, from the arm's base (metres)."""
RADII = {"apple": APPLE_R_M, "banana": BANANA_R_M}


class FruitInBowl(PiperTask):
    """Put the fruit into the bowl."""

    fruit = "apple"
    episode_steps = 150
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS | {
        "fruit_pose": POSE_BOUNDS,
        "bowl_pos": POSE_BOUNDS,
    }
    meanings: ClassVar[Mapping[str, str]] = {
        **ARM_MEANINGS,
        "fruit_pose": "position (m), quaternion wxyz; world",
        "bowl_pos": "middle of its floor (m); world",
    }
    scales: ClassVar[dict[str, float]] = {
        "touch": 0.3, "lift": 0.5, "carry": 1.0, "success": 2.0, "time": -1.0,
    }  # fmt: skip

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the fruit and the bowl."""
        super().scene(spec)
        (add_apple if self.fruit == "apple" else add_banana)(spec)
        add_bowl(spec)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Put the fruit on one side and the bowl on the other."""
        fruit = self.within_reach(rng.uniform(FRUIT_LOW, FRUIT_HIGH))
        fruit[:, 2] += RADII[self.fruit]
        yaw = rng.uniform(-0.35, 0.35)
        return {
            self.fruit: np.concatenate([fruit, yaw_quat(yaw)], axis=1),
            "bowl": self.within_reach(rng.uniform(BOWL_LOW, BOWL_HIGH)),
        }

    def observe(self, s: State) -> dict[str, NDArray]:
        """Add where fruit and bowl are."""
        pose = np.concatenate([s.pos(self.fruit), s.quat(self.fruit)], axis=1)
        return super().observe(s) | {"fruit_pose": pose, "bowl_pos": s.pos("bowl")}

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward the hand at the fruit, the fruit in the air, and the fruit over the bowl."""
        touch = near(s.gap("tip", self.fruit), 0.10)
        high = (s.pos(self.fruit)[:, 2] - self.surface_m - RADII[self.fruit]) / 0.08
        aside = near(self._aside(s), 0.15)
        in_bowl = self._is_inside(s)
        return {
            "touch": np.where(in_bowl, 1.0, touch),
            "lift": np.where(in_bowl, 1.0, np.clip(high, 0.0, 1.0) * touch),
            "carry": aside,
            "success": self.success(s),
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """In the bowl, and let go."""
        return self._is_inside(s) & (s.gap("tip", self.fruit) > 0.07)

    def _aside(self, s: State) -> NDArray:
        """Horizontal distance of fruit and bowl."""
        return np.hypot(*(s.pos(self.fruit) - s.pos("bowl"))[:, :2].T)

    def _is_inside(self, s: State) -> NDArray[np.bool_]:
        low = s.pos(self.fruit)[:, 2] < self.surface_m + BOWL_HIGH_M + 0.035
        return (self._aside(s) < BOWL_R_M - 0.01) & low


class AppleInBowl(FruitInBowl):
    """Put the apple into the bowl."""


class BananaInBowl(FruitInBowl):
    """Put the banana into the bowl."""

    fruit = "banana"


class DogAppleInBowl(FruitInBowl, OnDog):
    """Put the apple into the bowl."""


class DogBananaInBowl(FruitInBowl, OnDog):
    """Put the banana into the bowl."""

    fruit = "banana"


class WheelsAppleInBowl(FruitInBowl, OnWheels):
    """Put the apple into the bowl."""


class WheelsBananaInBowl(FruitInBowl, OnWheels):
    """Put the banana into the bowl."""

    fruit = "banana"
