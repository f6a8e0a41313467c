"""CloseJar: put the lid on the jar of one colour."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import other_colours
from maniple.envs.panda.expert import OPEN, SHUT, Waypoint, over, pick, release, script, shifted
from maniple.envs.panda.grasp import is_held, nothing_held
from maniple.envs.panda.parts import add_fixture, add_rod, add_thing
from maniple.envs.panda.placement import lying, on, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.paint import COLOURS, add_paint
from maniple.sim.state import State, norm

JARS = ("jar0", "jar1")
JAR_M, LID_HALF_M = 0.106, 0.0105
SENSOR = ProximitySensor("jar0", (0.0, 0.0, JAR_M + 0.0075), (0.025, 0.025, 0.0125))


class CloseJar(PandaTask):
    """Close the jar of the named colour."""

    yaw = (-0.6 * pi, 0.6 * pi)
    variations = len(COLOURS)
    corners = ((-0.167, -0.276), (0.167, 0.314))
    reached = ((0.043, 0.277, DOWN_M + 0.02),)
    bodies = ("lid", *JARS)
    graspable = ("lid",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"close the {colour} jar",
            f"screw on the {colour} jar lid",
            f"grasping the lid, lift it from the table and use it to seal the {colour} jar",
            f"pick up the lid from the table and put it on the {colour} jar",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add two jars of 9 x 11 cm and a lid of 74 mm."""
        for name in JARS:
            jar = add_fixture(spec, name)
            add_rod(jar, 0.046, 0.045, (0, 0, 0.045), name=f"{name}.body")
            add_rod(jar, 0.034, 0.008, (0, 0, JAR_M - 0.008), (0.85, 0.85, 0.85, 1))
            add_paint(spec, name)
        add_rod(add_thing(spec, "lid"), 0.037, LID_HALF_M, rgba=(0.6, 0.6, 0.62, 1), kg=0.2)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Scatter the jars; the lid lies beside them."""
        spots = scatter(rng, base, 2, (-0.11, -0.22), (0.11, 0.04), 0.14, wrist_m=0.45)
        return {
            "jar0": lying(base, spots[:, 0], 0.0),
            "jar1": lying(base, spots[:, 1], 0.0),
            "lid": on(base, (0.043, 0.277, LID_HALF_M)),
            "paint.jar0": variation,
            "paint.jar1": other_colours(rng, variation, 1)[:, 0],
        }

    def aim(self, s: State) -> NDArray:
        """The lid."""
        return s.pos("lid")

    def progress(self, s: State) -> NDArray:
        """Lid in hand, then near the jar's mouth."""
        mouth = s.pos("jar0") + [0.0, 0.0, JAR_M]
        return 0.3 * is_held(s, 0) + 0.7 * near(norm(s.pos("lid") - mouth), 0.15)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the lid over the jar's mouth, and none in the gripper."""
        return SENSOR.detects(s, "lid") & nothing_held(s)


def _jar(up_m: float):
    return over("jar0", (0, 0, JAR_M + LID_HALF_M + up_m))


expert = script(
    CloseJar,
    pick(over("lid"), lift_m=0.2),
    Waypoint(_jar(0.08), SHUT, tolerance_m=0.008),
    Waypoint(_jar(0.002), SHUT, 1, 0.004, 0.02),
    release(),
    Waypoint(shifted((0, 0, 0.08)), OPEN),
)
