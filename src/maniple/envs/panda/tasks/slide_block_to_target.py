"""SlideBlockToTarget: push a block onto a square."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import OPEN, SHUT, Goal, Observed, Waypoint, close, over, script
from maniple.envs.panda.parts import NO_BITS, add_box, add_fixture, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.state import State

BLOCK_HALF_M, BLOCK_KG = 0.028, 0.356
SENSOR = ProximitySensor("target", (0.0, 0.0, 0.0075), (0.005, 0.005, 0.0075))


class SlideBlockToTarget(PandaTask):
    """Slide the block to the target."""

    corners = ((-0.03, -0.14), (0.08, 0.2))
    reached = tuple((0.025, y, DOWN_M + z) for y in (-0.03, 0.15) for z in (0.02, 0.1))
    bodies = ("block", "target")

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return [
            "slide the block to target",
            "slide the block onto the target",
            "push the block until it is sitting on top of the target",
            "slide the block towards the green target",
            "cover the target with the block by pushing the block in its direction",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a block of 56 mm and a square of 10 cm."""
        add_slider(spec)
        add_square(spec, "target", (0.0, 0.68, 0.0))

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Turn and move the whole scene."""
        return {
            "block": on(base, (0.025, -0.025, BLOCK_HALF_M)),
            "target": on(base, (0.025, 0.15, 0.001)),
        }

    def aim(self, s: State) -> NDArray:
        """The block."""
        return s.pos("block")

    def progress(self, s: State) -> NDArray:
        """How near the block is."""
        return near(s.gap("block", "target"), 0.15)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the block over the very middle of the square."""
        return SENSOR.detects(s, "block")


def add_slider(spec: mujoco.MjSpec) -> None:
    """Add the block that is pushed."""
    half = (BLOCK_HALF_M,) * 3
    add_box(add_thing(spec, "block"), half, rgba=(0.9, 0.05, 0.05, 1), kg=BLOCK_KG, friction=0.6)


def add_square(
    spec: mujoco.MjSpec, name: str, rgb: tuple[float, float, float], half_m: float = 0.05
) -> None:
    """Add a flat square on the table."""
    flat = (half_m, half_m, 0.0005)
    add_box(add_fixture(spec, name), flat, rgba=(*rgb, 1.0), bits=NO_BITS, name=name)


def slide(to: Callable[[Observed], Goal]) -> list[Waypoint]:
    """Take the block between the fingers and slide it: pushed at one point it turns and escapes."""
    return [
        Waypoint(over("block", (0, 0, 0.09)), OPEN, tolerance_m=0.015),
        Waypoint(over("block"), OPEN, 1, 0.005, 0.03),
        close(),
        Waypoint(to, SHUT, step_m=0.03),
    ]


expert = script(SlideBlockToTarget, slide(over("target", (0, 0, BLOCK_HALF_M))))
