"""StackBlocks: build a tower of two to four blocks of one colour."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import add_block, any_yaw, other_colours
from maniple.envs.panda.expert import (
    OPEN,
    SHUT,
    Goal,
    Observed,
    Waypoint,
    over,
    pick,
    release,
    script,
    shifted,
)
from maniple.envs.panda.grasp import nothing_held
from maniple.envs.panda.placement import lying, on, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask
from maniple.envs.panda.tasks.slide_block_to_target import add_square
from maniple.sim.paint import COLOURS
from maniple.sim.state import State

TARGETS = tuple(f"target{k}" for k in range(4))
DISTRACTORS = tuple(f"distractor{k}" for k in range(4))
SENSOR = ProximitySensor("plane", (0.0, 0.0, 0.1025), (0.005, 0.005, 0.1025))
FEWEST, HEIGHTS = 2, 3
LOW, HIGH = (-0.27, -0.37), (0.27, 0.37)


class StackBlocks(PandaTask):
    """Stack the named number of blocks of the named colour."""

    variations = len(COLOURS) * HEIGHTS
    episode_steps = 500
    corners = ((-0.3, -0.405), (0.3, 0.405))
    reached = ((0.0, 0.0, DOWN_M + 0.03), (0.0, 0.0, DOWN_M + 0.3))
    bodies = (*TARGETS, *DISTRACTORS, "plane")
    graspable = (*TARGETS, *DISTRACTORS)
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour, count = COLOURS[variation // HEIGHTS], FEWEST + variation % HEIGHTS
        return [
            f"stack {count} {colour} blocks",
            f"place {count} of the {colour} cubes on top of each other",
            f"pick up and set down {count} {colour} blocks on top of each other",
            f"build a tall tower out of {count} {colour} cubes",
            f"arrange {count} {colour} blocks in a vertical stack on the table top",
            f"set {count} {colour} cubes on top of each other",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add eight blocks of 5 cm and a square of 7.5 cm."""
        for name in (*TARGETS, *DISTRACTORS):
            add_block(spec, name)
        add_square(spec, "plane", (0.5, 1.0, 0.5), 0.0375)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Scatter the blocks around the square."""
        places = {"plane": on(base, (0, 0, 0.001))}
        spots = scatter(rng, base, 8, LOW, HIGH, 0.1, around=((0, 0), (0.04, 0), (-0.04, 0)))
        colour = variation // HEIGHTS
        other = other_colours(rng, colour, 1)[:, 0]
        for k, name in enumerate((*TARGETS, *DISTRACTORS)):
            places[name] = lying(base, spots[:, k], 0.025, any_yaw(rng))
            places[f"paint.{name}"] = colour if name in TARGETS else other
        return places

    def aim(self, s: State) -> NDArray:
        """The lowest block that is not on the tower yet."""
        todo = self._on_tower(s).argmin(1)
        return np.stack([s.pos(name) for name in TARGETS])[todo, np.arange(s.rows)]

    def progress(self, s: State) -> NDArray:
        """Blocks on the tower."""
        return self._on_tower(s).sum(1) / self._wanted(s)

    def success(self, s: State) -> NDArray[np.bool_]:
        """Enough blocks over the square's very middle, and none in the gripper."""
        return (self._on_tower(s).sum(1) >= self._wanted(s)) & nothing_held(s)

    def _wanted(self, s: State) -> NDArray:
        return FEWEST + s.note("variation") % HEIGHTS

    def _on_tower(self, s: State) -> NDArray[np.bool_]:
        return np.stack([SENSOR.detects(s, name) for name in TARGETS], 1)


def put_on(name: str, height_m: float, turn_rad: float = np.pi / 2) -> list[Waypoint]:
    """Set a held block down on a place, let go, and leave upwards."""
    there = over(name, (0, 0, height_m), fold_rad=turn_rad)

    def above(observed: Observed) -> Goal:
        pos, turn = there(observed)
        return pos + [0.0, 0.0, 0.07], turn

    return [
        Waypoint(above, SHUT, tolerance_m=0.01),
        Waypoint(there, SHUT, 1, 0.004, 0.02),
        release(),
        Waypoint(shifted((0, 0, 0.08)), OPEN, tolerance_m=0.02),
    ]


_STEPS = [
    pick(over(name), lift_m=0.27) + put_on("plane", 0.027 + 0.05 * k)
    for k, name in enumerate(TARGETS)
]
expert = script(StackBlocks, *_STEPS)
