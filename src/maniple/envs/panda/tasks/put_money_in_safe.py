"""PutMoneyInSafe: put a stack of notes on one of the safe's shelves."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import OPEN, SHUT, Goal, Observed, Waypoint, close, release, script
from maniple.envs.panda.grasp import is_held, nothing_held
from maniple.envs.panda.named import named
from maniple.envs.panda.parts import add_box, add_fixture, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import PandaTask, near
from maniple.sim.rotation import quat_mul
from maniple.sim.state import State, norm

SHELVES = ("bottom", "middle", "top")
SHELF_M = (0.012, 0.157, 0.312)
"""Height of each shelf's surface."""
HALF = (0.155, 0.118, 0.2475)
SENSORS = [ProximitySensor("safe", (0.0, 0.01, z + 0.0145), (0.1, 0.1, 0.0075)) for z in SHELF_M]
GREY, NOTES = (0.55, 0.57, 0.60, 1.0), (0.45, 0.68, 0.45, 1.0)
TURN_RAD = 0.349


class PutMoneyInSafe(PandaTask):
    """Put the money away in the safe on the named shelf."""

    yaw = (0.0, pi / 2)
    variations = 3
    episode_steps = 250
    corners = ((-0.22, -0.42), (0.12, -0.05))
    reached = tuple((-0.16, 0.06, z) for z in (0.17, 0.35, 0.6))
    bodies = ("safe", "money")
    graspable = ("money",)
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = SHELVES[variation]
        return [
            f"put the money away in the safe on the {name} shelf",
            f"leave the money on the {name} shelf on the safe",
            f"place the stack of bank notes on the {name} shelf of the safe",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add an open safe of 31 x 24 x 50 cm, and notes of 136 x 93 x 32 mm."""
        safe = add_fixture(spec, "safe")
        x, y, z = HALF
        for side in (-x, x):
            add_box(safe, (0.005, y, z), (side, 0, z), GREY)
        add_box(safe, (x, 0.005, z), (0, -y, z), GREY)
        for height in (*(h - 0.005 for h in SHELF_M), 2 * z - 0.005):
            add_box(safe, (x, y, 0.005), (0, 0, height), GREY)
        add_box(safe, (0.145, 0.005, 0.225), (0.29, 0.124, z), GREY)
        add_box(add_thing(spec, "money"), (0.068, 0.0465, 0.016), rgba=NOTES, kg=0.3)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Lay the notes on the safe, over its front edge, so that fingers fit around them."""
        safe = on(base, (-0.048, -0.25, 0), TURN_RAD)
        x = rng.uniform(-0.05, 0.05)
        offset = np.stack([x, np.full_like(x, 0.092), np.full_like(x, 0.5115)], 1)
        return {"safe": safe, "money": on(safe, offset)}

    def aim(self, s: State) -> NDArray:
        """The notes."""
        return s.pos("money")

    def progress(self, s: State) -> NDArray:
        """Notes in hand, then near the shelf."""
        shelf = named(s, [sensor.centre_w(s) for sensor in SENSORS])
        return 0.3 * is_held(s, 0) + 0.7 * near(norm(s.pos("money") - shelf), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the notes on the shelf, and none in the gripper."""
        found = named(s, [sensor.detects(s, "money") for sensor in SENSORS])
        return found & nothing_held(s)


def _ahead(tilt_rad: float) -> NDArray:
    """Pointing into the safe, the fingers above each other, tilted down."""
    half = (tilt_rad - pi / 2) / 2
    lean = np.array([np.cos(half), np.sin(half), 0.0, 0.0])
    return quat_mul(lean, np.array([0.0, 0.0, 1.0, 0.0]))


def _at_notes(out_m: float, up_m: float = 0.0):
    def goal(observed: Observed) -> Goal:
        offset = (0.0, 0.037 + out_m, up_m)
        return observed.point("money", offset), quat_mul(observed.quat("safe"), _ahead(0.0))

    return goal


def _at_shelf(depth_m: float, up_m: float = 0.078):
    """Goal before the named shelf, or in it by `depth_m`."""

    def goal(observed: Observed) -> Goal:
        z = np.array(SHELF_M)[observed.variation] + up_m
        offset = np.stack([np.zeros_like(z), np.full_like(z, HALF[1] - depth_m), z], 1)
        return observed.point("safe", offset), quat_mul(observed.quat("safe"), _ahead(0.30))

    return goal


expert = script(
    PutMoneyInSafe,
    Waypoint(_at_notes(0.10, 0.05), OPEN, tolerance_m=0.03),
    Waypoint(_at_notes(0.09), OPEN, tolerance_m=0.01),
    Waypoint(_at_notes(0.0), OPEN, 1, 0.005, 0.03),
    close(),
    Waypoint(_at_notes(0.0, 0.05), SHUT, tolerance_m=0.02),
    Waypoint(_at_notes(0.18, 0.05), SHUT, tolerance_m=0.02),
    Waypoint(_at_shelf(-0.17), SHUT, tolerance_m=0.015),
    Waypoint(_at_shelf(0.005), SHUT, tolerance_m=0.008, step_m=0.03),
    release(5),
    Waypoint(_at_shelf(-0.1), OPEN),
)
