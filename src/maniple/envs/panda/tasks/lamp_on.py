"""LampOn: press a lamp's button."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.button import ButtonTask, add_button
from maniple.envs.panda.expert import SHUT, Waypoint, over, script
from maniple.envs.panda.parts import NO_BITS, add_box, add_fixture, add_ring, add_rod
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import DOWN_M

BUTTON_XY, LAMP_XY = (0.054, 0.156), (0.058, -0.073)
TEAL, DARK = (0.08, 0.58, 0.50, 1.0), (0.15, 0.15, 0.16, 1.0)


class LampOn(ButtonTask):
    """Turn on the light."""

    # RLBench turns all around and draws again where the lamp is in the arm's way.
    yaw = (-0.4, 3.5)
    corners = ((-0.052, -0.183), (0.168, 0.176))
    reached = tuple((*BUTTON_XY, DOWN_M + z) for z in (0.02, 0.1))
    bodies = ("button", "lamp")

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return [
            "turn on the light",
            "press the button to turn on the lamp",
            "press the light switch",
            "turn the lamp on",
            "close the gripper and press on the button until the light turns on",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a lamp of 47 cm with a shade, and a button of 35 mm on its cable."""
        add_button(spec, "button", 0.0175, 0.0165, paints=False)
        lamp = add_fixture(spec, "lamp")
        add_rod(lamp, 0.047, 0.010, (0, 0, 0.010), DARK)
        add_rod(lamp, 0.016, 0.128, (0, 0, 0.148), (0.6, 0.6, 0.65, 1))
        add_ring(lamp, 0.100, 0.008, 0.10, (0, 0, 0.36), TEAL, sides=12)
        add_box(lamp, (0.004, 0.09, 0.003), (-0.002, 0.13, 0.003), DARK, bits=NO_BITS)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put lamp and button somewhere."""
        return {"button": on(base, (*BUTTON_XY, 0)), "lamp": on(base, (*LAMP_XY, 0))}


expert = script(
    LampOn,
    Waypoint(over("button", (0, 0, 0.42), np.pi / 2, np.pi), SHUT, tolerance_m=0.04),
    Waypoint(over("button", (0, 0, 0.09), np.pi / 2, np.pi), SHUT, tolerance_m=0.01),
    Waypoint(over("button", (0, 0, 0.015), np.pi / 2, np.pi), SHUT, step_m=0.02),
)
