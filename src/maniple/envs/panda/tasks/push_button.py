"""PushButton: press a button down."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.button import ButtonTask, add_button
from maniple.envs.panda.expert import SHUT, Waypoint, over, script
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import DOWN_M
from maniple.sim.paint import COLOURS

# Red and lime are the colours of the button's own plate.
BUTTON_COLOURS = tuple(c for c in COLOURS if c not in ("red", "lime"))
NUMBERS = np.array([COLOURS.index(c) for c in BUTTON_COLOURS])


class PushButton(ButtonTask):
    """Push the button."""

    variations = len(BUTTON_COLOURS)
    corners = ((-0.05, -0.05), (0.05, 0.05))
    reached = ((0.0, 0.0, DOWN_M), (0.0, 0.0, DOWN_M + 0.1))
    bodies = ("button",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = BUTTON_COLOURS[variation]
        return [
            f"push the {colour} button",
            f"push down the {colour} button",
            f"press the button with the {colour} base",
            f"press the {colour} button",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add the button."""
        add_button(spec, "button")

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the button anywhere."""
        return {"button": on(base, (0, 0, 0)), "paint.button": NUMBERS[variation]}


expert = script(
    PushButton,
    Waypoint(over("button", (0, 0, 0.09)), SHUT, tolerance_m=0.01),
    Waypoint(over("button", (0, 0, 0.015)), SHUT, step_m=0.02),
)
