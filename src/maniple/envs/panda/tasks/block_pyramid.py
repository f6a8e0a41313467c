"""BlockPyramid: build a pyramid of six blocks of one colour."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import add_block, any_yaw, other_colours
from maniple.envs.panda.expert import OPEN, SHUT, Waypoint, over, pick, release, script, shifted
from maniple.envs.panda.grasp import nothing_held
from maniple.envs.panda.parts import NO_BITS, add_box, add_fixture
from maniple.envs.panda.placement import lying, on, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask
from maniple.sim.paint import COLOURS
from maniple.sim.state import State

SIDE_M = 0.038
BLOCKS = tuple(f"block{k}" for k in range(6))
DISTRACTORS = tuple(f"distractor{k}" for k in range(6))
LAYERS = (
    (ProximitySensor("plane", (0, 0, 0.0195), (0.015, 0.07, 0.0175)), 3),
    (ProximitySensor("plane", (0, 0, 0.0555), (0.015, 0.04, 0.0175)), 2),
    (ProximitySensor("plane", (0, 0, 0.0935), (0.015, 0.025, 0.0175)), 1),
)
# Where each block goes: y and z of its middle.
PLACES = ((0.0, 0), (-0.05, 0), (0.05, 0), (-0.025, 1), (0.025, 1), (0.0, 2))


class BlockPyramid(PandaTask):
    """Stack the blocks of the named colour in a pyramid."""

    yaw = (-pi / 8, pi / 8)
    variations = len(COLOURS)
    episode_steps = 500
    corners = ((-0.275, -0.25), (0.275, 0.25))
    reached = tuple((0.0, y, DOWN_M + z) for y in (-0.05, 0.05) for z in (0.02, 0.2))
    bodies = (*BLOCKS, *DISTRACTORS, "plane")
    graspable = (*BLOCKS, *DISTRACTORS)
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"stack {colour} blocks in a pyramid",
            f"create a pyramid with the {colour} objects",
            f"make a pyramid out of {colour} cubes",
            f"position the {colour} blocks in the shape of a pyramid",
            f"use the {colour} blocks to build a pyramid",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add twelve blocks of 38 mm and a plane of 5 x 16 cm."""
        for name in (*BLOCKS, *DISTRACTORS):
            add_block(spec, name, SIDE_M, 0.053)
        flat = (0.025, 0.08, 0.0005)
        add_box(add_fixture(spec, "plane"), flat, rgba=(0.5, 1, 0.5, 1), bits=NO_BITS)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Scatter the blocks behind the plane, and the others before it."""
        places = {"plane": on(base, (0, 0, 0.001))}
        there = scatter(rng, base, 6, (0.09, -0.22), (0.25, 0.22), 0.085)
        here = scatter(rng, base, 6, (-0.25, -0.22), (-0.10, 0.22), 0.075, wrist_m=0.0)
        other = other_colours(rng, variation, 1)[:, 0]
        for names, spots, colour in ((BLOCKS, there, variation), (DISTRACTORS, here, other)):
            for k, name in enumerate(names):
                places[name] = lying(base, spots[:, k], SIDE_M / 2, any_yaw(rng))
                places[f"paint.{name}"] = colour
        return places

    def aim(self, s: State) -> NDArray:
        """The next block."""
        count = np.minimum(self._counts(s).sum(1), len(BLOCKS) - 1).astype(np.intp)
        return np.stack([s.pos(name) for name in BLOCKS])[count, np.arange(s.rows)]

    def progress(self, s: State) -> NDArray:
        """Blocks in their layers."""
        return self._counts(s).sum(1) / len(BLOCKS)

    def success(self, s: State) -> NDArray[np.bool_]:
        """Three, two and one, and none in the gripper."""
        wanted = np.array([count for _, count in LAYERS])
        return (self._counts(s) >= wanted).all(1) & nothing_held(s)

    def _counts(self, s: State) -> NDArray:
        layers = [np.stack([v.detects(s, b) for b in BLOCKS]).sum(0) for v, _ in LAYERS]
        return np.minimum(np.stack(layers, 1), [count for _, count in LAYERS])


def _place(index: int) -> list[Waypoint]:
    y, layer = PLACES[index]
    there = (0.0, y, SIDE_M * (layer + 0.5) + 0.001)
    above = (0.0, y, there[2] + 0.07)
    across = pi / 2
    return [
        *pick(over(BLOCKS[index]), above_m=0.08, lift_m=0.14),
        Waypoint(over("plane", above, across, pi), SHUT, tolerance_m=0.01),
        Waypoint(over("plane", there, across, pi), SHUT, 1, 0.004, 0.025),
        release(2),
        Waypoint(shifted((0, 0, 0.08)), OPEN, tolerance_m=0.03),
    ]


expert = script(BlockPyramid, *(_place(index) for index in range(len(BLOCKS))))
