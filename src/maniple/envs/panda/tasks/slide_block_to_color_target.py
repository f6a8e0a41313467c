"""SlideBlockToColorTarget: push a block onto the square of one colour."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import Goal, Observed, down, script
from maniple.envs.panda.named import named
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.envs.panda.tasks.slide_block_to_target import (
    BLOCK_HALF_M,
    add_slider,
    add_square,
    slide,
)
from maniple.sim.rotation import quat_yaw
from maniple.sim.state import State, norm

NAMES = ("green", "blue", "pink", "yellow")
SQUARES = tuple(f"target{k}" for k in range(4))
RGB = ((0.0, 0.68, 0.0), (0.0, 0.0, 0.85), (1.0, 0.08, 0.57), (1.0, 0.76, 0.0))
PLACES = ((0.025, 0.15), (0.225, 0.075), (0.025, -0.3), (-0.219, -0.129))
SENSORS = [ProximitySensor(name, (0, 0, 0.0525), (0.05, 0.05, 0.0525)) for name in SQUARES]


class SlideBlockToColorTarget(PandaTask):
    """Slide the block to the square of the named colour."""

    variations = 4
    corners = ((-0.27, -0.35), (0.275, 0.2))
    reached = tuple((x, y, DOWN_M + 0.05) for x, y in (*PLACES, (0.025, -0.025)))
    bodies = ("block", *SQUARES)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = NAMES[variation]
        return [
            f"slide the block to {colour} target",
            f"slide the block onto the {colour} square",
            f"push the block until it is sitting on top of the {colour} target",
            f"slide the block towards the {colour} plane",
            f"cover the {colour} target with the block by pushing the block in its direction",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a block of 56 mm and four squares of 10 cm."""
        add_slider(spec)
        for name, rgb in zip(SQUARES, RGB, strict=True):
            add_square(spec, name, rgb)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Turn and move the whole scene."""
        squares = {n: on(base, (*p, 0.001)) for n, p in zip(SQUARES, PLACES, strict=True)}
        return {"block": on(base, (0.025, -0.025, BLOCK_HALF_M))} | squares

    def aim(self, s: State) -> NDArray:
        """The block."""
        return s.pos("block")

    def progress(self, s: State) -> NDArray:
        """How near the block is."""
        return near(norm(named(s, [s.pos(n) for n in SQUARES]) - s.pos("block")), 0.15)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the block over the square."""
        return named(s, [sensor.detects(s, "block") for sensor in SENSORS])


def _onto_square(observed: Observed) -> Goal:
    target = observed.choose(observed.variation, [observed.pos(n) for n in SQUARES])
    return target + [0.0, 0.0, BLOCK_HALF_M], down(quat_yaw(observed.quat(SQUARES[0])), np.pi / 2)


expert = script(SlideBlockToColorTarget, slide(_onto_square))
