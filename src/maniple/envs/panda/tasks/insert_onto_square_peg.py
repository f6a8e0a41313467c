"""InsertOntoSquarePeg: put a square ring on the peg of one colour."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import any_yaw, other_colours
from maniple.envs.panda.expert import SHUT, Waypoint, over, pick, release, script
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.parts import add_box, add_fixture, add_thing
from maniple.envs.panda.placement import lying, on, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.paint import COLOURS, add_paint
from maniple.sim.state import State

PEGS_X_M = (-0.125, 0.0, 0.125)
PEGS_Y_M = -0.075
SIDES = (
    ((0.0, 0.02, 0.0275), (0.02, 0.005, 0.0275)),
    ((0.0, -0.023, 0.0275), (0.02, 0.005, 0.0275)),
    ((-0.02, 0.0, 0.0275), (0.005, 0.02, 0.0275)),
    ((0.02, 0.0, 0.0275), (0.005, 0.02, 0.0275)),
)
SENSORS = [ProximitySensor("peg", centre, half) for centre, half in SIDES]
BLUE = (0.23, 0.75, 1.0, 1.0)


class InsertOntoSquarePeg(PandaTask):
    """Put the ring on the spoke of the named colour."""

    variations = len(COLOURS)
    corners = ((-0.2, -0.125), (0.2, 0.2))
    reached = tuple((x, PEGS_Y_M, DOWN_M + z) for x in PEGS_X_M for z in (0.1, 0.24))
    bodies = ("ring", "peg")
    graspable = ("ring",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"put the ring on the {colour} spoke",
            f"slide the ring onto the {colour} colored spoke",
            f"place the ring onto the {colour} spoke",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add three pegs of 25 mm on a base, and a ring of 5 cm with a hole of 3 cm."""
        stand = add_fixture(spec, "stand")
        add_box(stand, (0.2, 0.05, 0.01), (0, 0, 0.01), (0.49, 0.38, 0.29, 1))
        for k, x in enumerate(PEGS_X_M):
            name = f"pillar{k}"
            pillar = stand.add_body(name=name, pos=[x, 0, 0.08])
            add_box(pillar, (0.0125, 0.0125, 0.06), name=name, friction=0.3)
            add_paint(spec, name)
        add_fixture(spec, "peg")
        ring = add_thing(spec, "ring")
        for sign in (-1, 1):
            add_box(ring, (0.025, 0.005, 0.005), (0, 0.02 * sign, 0), BLUE, 0.006, friction=0.3)
            add_box(ring, (0.005, 0.015, 0.005), (0.02 * sign, 0, 0), BLUE, 0.004, friction=0.3)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Choose the peg of the named colour, and lay the ring before the pegs."""
        chosen = rng.integers(3)
        others = other_colours(rng, variation, 3)
        at = np.stack([np.array(PEGS_X_M)[chosen], np.full(len(rng), PEGS_Y_M)], 1)
        spots = scatter(rng, base, 1, (-0.16, 0.05), (0.16, 0.16), 0.0)
        places = {
            "stand": on(base, (0, PEGS_Y_M, 0)),
            "peg": lying(base, at, 0.0),
            "ring": lying(base, spots[:, 0], 0.006, any_yaw(rng)),
        }
        for k in range(3):
            places[f"paint.pillar{k}"] = np.where(chosen == k, variation, others[:, k])
        return places

    def aim(self, s: State) -> NDArray:
        """The ring."""
        return s.pos("ring")

    def progress(self, s: State) -> NDArray:
        """Ring in hand, then near the peg."""
        return 0.3 * is_held(s, 0) + 0.7 * near(s.gap("ring", "peg"), 0.15)

    def success(self, s: State) -> NDArray[np.bool_]:
        """The ring all around the peg, low on it."""
        found = [sensor.detects(s, "ring") for sensor in SENSORS]
        return found[0] & found[1] & found[2] & found[3]


def _peg(height_m: float):
    return over("peg", (0, 0, height_m))


expert = script(
    InsertOntoSquarePeg,
    pick(over("ring"), lift_m=0.2),
    Waypoint(_peg(0.22), SHUT, 1, 0.005),
    Waypoint(_peg(0.112), SHUT, 1, 0.004, 0.02),
    release(12),
)
