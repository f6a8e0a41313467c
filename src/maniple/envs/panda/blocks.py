"""Coloured cubes, as several of RLBench's tasks have them."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.parts import add_box, add_thing
from maniple.sim.paint import COLOURS, add_paint


def add_block(spec: mujoco.MjSpec, name: str, side_m: float = 0.05, kg: float = 0.125) -> None:
    """Add a cube that can be painted."""
    half = (side_m / 2,) * 3
    add_box(add_thing(spec, name), half, kg=kg, name=name)
    add_paint(spec, name)


def other_colours(rng: Draws, than: NDArray, count: int) -> NDArray:
    """Draw colours that differ from given ones and from each other: (rows, count)."""
    steps = 1 + rng.permutation(len(COLOURS) - 1)[:, :count]
    return (than[:, None] + steps) % len(COLOURS)


def any_yaw(rng: Draws) -> NDArray:
    """Turns about the vertical, (rows,), rad."""
    return rng.uniform(-np.pi, np.pi)
