"""PickAndLift: grasp the block of one colour and hold it in the air."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import add_block, any_yaw, other_colours
from maniple.envs.panda.expert import SHUT, Goal, Observed, Waypoint, over, pick, script
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.parts import NO_BITS, add_ball, add_fixture
from maniple.envs.panda.placement import lying, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import PandaTask, near
from maniple.sim.paint import COLOURS
from maniple.sim.state import State

BLOCKS = ("target", "distractor0", "distractor1")
LOW, HIGH = (-0.28, -0.28), (0.13, 0.265)
SENSOR = ProximitySensor("goal", (0.0, 0.0, -0.013), (0.039, 0.039, 0.03))


class PickAndLift(PandaTask):
    """Pick up the block of the named colour and lift it up to the target."""

    variations = len(COLOURS)
    corners = ((-0.289, -0.29), (0.141, 0.276))
    reached = ((-0.2, 0, 0.45), (0.05, 0, 0.45), (-0.07, 0.18, 0.3), (-0.07, -0.18, 0.3))
    bodies = (*BLOCKS, "goal")
    graspable = BLOCKS
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"pick up the {colour} block and lift it up to the target",
            f"grasp the {colour} block to the target",
            f"lift the {colour} block up to the target",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add three blocks of 5 cm, and a ball that marks the goal."""
        for name in BLOCKS:
            add_block(spec, name)
        add_ball(add_fixture(spec, "goal"), 0.04, rgba=(1.0, 0.14, 0.14, 1.0), bits=NO_BITS)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Scatter blocks and goal, the goal 23 cm up."""
        spots = scatter(rng, base, 1, LOW, HIGH, 0.0, wrist_m=0.45)
        places = {"goal": lying(base, spots[:, 0], 0.231)}
        spots = scatter(rng, base, 3, LOW, HIGH, 0.1)
        for k, name in enumerate(BLOCKS):
            places[name] = lying(base, spots[:, k], 0.025, any_yaw(rng))
        others = other_colours(rng, variation, 2)
        paint = {"paint.target": variation}
        paint |= {f"paint.{name}": others[:, k] for k, name in enumerate(BLOCKS[1:])}
        return places | paint

    def aim(self, s: State) -> NDArray:
        """The block."""
        return s.pos("target")

    def progress(self, s: State) -> NDArray:
        """Grasped, then near the goal."""
        return 0.3 * is_held(s, 0) + 0.7 * near(s.gap("target", "goal"), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the held block in a box of 8 x 8 x 6 cm."""
        return SENSOR.detects(s, "target") & is_held(s, 0)


def _goal(observed: Observed) -> Goal:
    return observed.pos("goal"), observed.turn


expert = script(PickAndLift, pick(over("target"), lift_m=0.05), Waypoint(_goal, SHUT))
