"""MeatOffGrill: take the chicken or the steak off the grill."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import (
    OPEN,
    SHUT,
    Goal,
    Observed,
    Waypoint,
    close,
    down,
    raised,
    release,
    script,
    shifted,
)
from maniple.envs.panda.grasp import nothing_held
from maniple.envs.panda.named import is_named_held, named
from maniple.envs.panda.parts import NO_BITS, add_ball, add_box, add_fixture, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.rotation import quat_yaw
from maniple.sim.state import State, norm

MEAT = ("chicken", "steak")
GRATE_M, BESIDE_M = 0.10, -0.23
SENSOR = ProximitySensor("grill", (0.0, BESIDE_M, 0.05), (0.1, 0.09, 0.05))
BLACK, GREY = (0.13, 0.13, 0.14, 1.0), (0.4, 0.4, 0.42, 1.0)


class MeatOffGrill(PandaTask):
    """Take the named meat off the grill."""

    variations = 2
    corners = ((-0.16, -0.33), (0.16, 0.12))
    reached = tuple((x, y, DOWN_M + 0.17) for x in (-0.07, 0.07) for y in (0.0, BESIDE_M))
    bodies = (*MEAT, "grill")
    graspable = MEAT
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = MEAT[variation]
        return [
            f"take the {name} off the grill",
            f"pick up the {name} and place it next to the grill",
            f"remove the {name} from the grill and set it down to the side",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a grill of 30 x 22 x 10 cm, a drumstick and a slab."""
        grill = add_fixture(spec, "grill")
        add_box(grill, (0.15, 0.11, 0.045), (0, 0, 0.045), BLACK)
        for k in range(7):
            add_box(grill, (0.006, 0.10, 0.005), (-0.12 + 0.04 * k, 0, 0.095), GREY, bits=NO_BITS)
        add_box(grill, (0.14, 0.10, 0.005), (0, 0, GRATE_M - 0.005), (0, 0, 0, 0))
        add_box(grill, (0.15, 0.006, 0.09), (0, 0.135, 0.17), BLACK, euler=(-0.35, 0, 0))
        chicken = add_thing(spec, "chicken")
        add_box(chicken, (0.040, 0.020, 0.016), rgba=(0.82, 0.55, 0.25, 1), kg=0.05)
        add_ball(chicken, 0.018, (-0.03, 0, 0.004), (0.82, 0.55, 0.25, 1), bits=NO_BITS)
        steak = add_thing(spec, "steak")
        add_box(steak, (0.045, 0.028, 0.012), rgba=(0.5, 0.2, 0.15, 1), kg=0.06)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Lay both on the grill, slightly turned."""
        places = {"grill": on(base, (0, 0, 0))}
        for name, x, z in zip(MEAT, (-0.07, 0.07), (0.117, 0.113), strict=True):
            places[name] = on(base, (x, -0.01, z), rng.uniform(-0.4, 0.4))
        return places

    def aim(self, s: State) -> NDArray:
        """The meat."""
        return named(s, [s.pos(n) for n in MEAT])

    def progress(self, s: State) -> NDArray:
        """In hand, then beside the grill."""
        return 0.3 * is_named_held(s) + 0.7 * near(norm(self.aim(s) - SENSOR.centre_w(s)), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of it in a box beside the grill, and none in the gripper."""
        found = named(s, [SENSOR.detects(s, n) for n in MEAT])
        return found & nothing_held(s)


def _meat(observed: Observed) -> Goal:
    pos = observed.choose(observed.variation, [observed.pos(n) for n in MEAT])
    turn = observed.choose(observed.variation, [observed.quat(n) for n in MEAT])
    return pos, down(quat_yaw(turn))


def _beside(up_m: float):
    def goal(observed: Observed) -> Goal:
        return observed.point("grill", (0.0, BESIDE_M, up_m)), observed.turn.copy()

    return goal


expert = script(
    MeatOffGrill,
    Waypoint(raised(_meat, 0.1), OPEN, tolerance_m=0.012),
    Waypoint(_meat, OPEN, 1, 0.004, 0.03),
    close(),
    Waypoint(shifted((0, 0, 0.1)), SHUT, tolerance_m=0.02),
    Waypoint(_beside(0.15), SHUT, tolerance_m=0.02),
    Waypoint(_beside(0.035), SHUT),
    release(),
    Waypoint(shifted((0, 0, 0.1)), OPEN),
)
