"""PutRubbishInBin: throw the rubbish away, leaving the tomatoes alone."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import any_yaw
from maniple.envs.panda.expert import SHUT, Waypoint, over, pick, release, script
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.parts import add_ball, add_box, add_fixture, add_ring, add_rod, add_thing
from maniple.envs.panda.placement import lying, on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.state import State

THINGS_XY = ((0.086, 0.103), (0.121, 0.252), (0.098, -0.039))
SENSOR = ProximitySensor("bin", (0.0, 0.0, 0.0355), (0.07, 0.07, 0.0325))
STEEL, TOMATO, PAPER = (0.5, 0.52, 0.55, 1.0), (0.86, 0.16, 0.1, 1.0), (0.95, 0.95, 0.93, 1.0)


class PutRubbishInBin(PandaTask):
    """Put the rubbish in the bin."""

    corners = ((-0.02, -0.385), (0.19, 0.29))
    reached = ((0.087, -0.28, DOWN_M + 0.25), *((x, y, DOWN_M + 0.02) for x, y in THINGS_XY))
    bodies = ("rubbish", "bin", "tomato1", "tomato2")
    graspable = ("rubbish",)
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return [
            "put rubbish in bin",
            "drop the rubbish into the bin",
            "pick up the rubbish and leave it in the trash can",
            "throw away the trash, leaving any other objects alone",
            "chuck way any rubbish on the table rubbish",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a bin of 20 x 19 cm, crumpled paper of 87 x 50 x 34 mm, and two tomatoes."""
        can = add_fixture(spec, "bin")
        add_rod(can, 0.09, 0.002, (0, 0, 0.002), STEEL)
        add_ring(can, 0.090, 0.008, 0.093, (0, 0, 0.097), STEEL, sides=12)
        paper = add_thing(spec, "rubbish")
        add_box(paper, (0.0435, 0.025, 0.012), rgba=PAPER, kg=0.03)
        add_box(paper, (0.030, 0.020, 0.017), rgba=PAPER, kg=0.02, euler=(0, 0, 0.2))
        for name in ("tomato1", "tomato2"):
            add_ball(add_fixture(spec, name), 0.033, (0, 0, 0.033), TOMATO)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Deal the three things out to their places."""
        order = rng.permutation(3)
        spots = np.array(THINGS_XY)[order]
        return {
            "bin": on(base, (0.087, -0.28, 0)),
            "rubbish": lying(base, spots[:, 0], 0.0175, any_yaw(rng)),
            "tomato1": lying(base, spots[:, 1], 0.0),
            "tomato2": lying(base, spots[:, 2], 0.0),
        }

    def aim(self, s: State) -> NDArray:
        """The rubbish."""
        return s.pos("rubbish")

    def progress(self, s: State) -> NDArray:
        """Rubbish in hand, then near the bin."""
        return 0.3 * is_held(s, 0) + 0.7 * near(s.gap("rubbish", "bin"), 0.25)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of it at the bin's bottom."""
        return SENSOR.detects(s, "rubbish")


expert = script(
    PutRubbishInBin,
    pick(over("rubbish", fold_rad=np.pi), lift_m=0.24),
    Waypoint(over("bin", (0, 0, 0.255)), SHUT, tolerance_m=0.015),
    release(8),
)
