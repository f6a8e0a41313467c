"""LightBulbIn: take the bulb out of the holder of one colour and put it into the lamp."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import other_colours
from maniple.envs.panda.expert import OPEN, SHUT, Waypoint, over, pick, release, script, shifted
from maniple.envs.panda.grasp import is_held, nothing_held
from maniple.envs.panda.parts import add_ball, add_fixture, add_ring, add_rod, add_thing
from maniple.envs.panda.placement import lying, on, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.paint import COLOURS, add_paint
from maniple.sim.state import State, norm

BULBS, HOLDERS = ("bulb0", "bulb1"), ("holder0", "holder1")
RIM_M = 0.334
"""Height of the socket's rim."""
BALL_M = 0.019
"""From the bulb's middle up to the middle of its glass."""
HELD_M = 0.071
SENSOR = ProximitySensor("lamp", (0.0, 0.0, 0.2915), (0.01, 0.01, 0.0125))
LAMP_XY = (0.033, 0.002)
BRASS, DARK, GLASS = (0.7, 0.6, 0.3, 1.0), (0.15, 0.15, 0.16, 1.0), (0.95, 0.95, 0.85, 1.0)


class LightBulbIn(PandaTask):
    """Screw in the light bulb from the holder of the named colour."""

    variations = len(COLOURS)
    corners = ((-0.167, -0.05), (0.167, 0.4))
    reached = ((*LAMP_XY, DOWN_M + 0.35), (*LAMP_XY, DOWN_M + 0.45), (0.0, 0.25, DOWN_M + 0.08))
    bodies = (*BULBS, *HOLDERS, "lamp")
    graspable = BULBS

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"screw in the {colour} light bulb",
            f"screw the light bulb from the {colour} holder into the lamp",
            f"pick up the light bulb from the {colour} stand, lift it up to just above the lamp, "
            "then screw it down into the lamp in a clockwise fashion",
            f"put the light bulb from the {colour} casing into the lamp",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a lamp of 27 cm with a socket, and two bulbs of 68 x 106 mm in holders."""
        lamp = add_fixture(spec, "lamp")
        add_rod(lamp, 0.047, 0.010, (0, 0, 0.010), DARK)
        add_rod(lamp, 0.018, 0.128, (0, 0, 0.148), (0.6, 0.6, 0.65, 1))
        add_ring(lamp, 0.0165, 0.009, 0.029, (0, 0, 0.305), BRASS, sides=8)
        for bulb_name, holder_name in zip(BULBS, HOLDERS, strict=True):
            holder = add_fixture(spec, holder_name)
            add_rod(holder, 0.0495, 0.0105, (0, 0, 0.0015), name=f"{holder_name}.foot")
            add_ring(holder, 0.0165, 0.012, 0.024, (0, 0, 0.036), DARK, name=f"{holder_name}.rim")
            add_paint(spec, holder_name)
            bulb = add_thing(spec, bulb_name)
            add_ball(bulb, 0.034, (0, 0, BALL_M), GLASS, 0.06)
            add_rod(bulb, 0.0125, 0.0265, (0, 0, -0.0265), (0.6, 0.6, 0.6, 1), 0.04)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the lamp down and the holders beside it."""
        spots = scatter(rng, base, 2, (-0.12, 0.16), (0.12, 0.34), 0.14)
        return {
            "lamp": on(base, (*LAMP_XY, 0)),
            "holder0": lying(base, spots[:, 0], 0.0),
            "holder1": lying(base, spots[:, 1], 0.0),
            "bulb0": lying(base, spots[:, 0], HELD_M),
            "bulb1": lying(base, spots[:, 1], HELD_M),
            "paint.holder0": variation,
            "paint.holder1": other_colours(rng, variation, 1)[:, 0],
        }

    def aim(self, s: State) -> NDArray:
        """The bulb."""
        return s.pos("bulb0")

    def progress(self, s: State) -> NDArray:
        """Bulb in hand, then near the socket."""
        socket = s.pos("lamp") + [0.0, 0.0, RIM_M + 0.015]
        return 0.3 * is_held(s, 0) + 0.7 * near(norm(s.pos("bulb0") - socket), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """The bulb's end down in the socket, and none in the gripper."""
        return SENSOR.detects(s, "bulb0") & nothing_held(s)


def _lamp(up_m: float):
    return over("lamp", (0, 0, RIM_M + 0.034 + up_m))


expert = script(
    LightBulbIn,
    pick(over("bulb0", (0, 0, BALL_M)), lift_m=0.36),
    Waypoint(_lamp(0.08), SHUT, 1, 0.005),
    Waypoint(_lamp(0.002), SHUT, 1, 0.004, 0.02),
    release(),
    Waypoint(shifted((0, 0, 0.08)), OPEN),
)
