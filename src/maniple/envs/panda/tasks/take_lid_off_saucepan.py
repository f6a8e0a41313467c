"""TakeLidOffSaucepan: grasp the knob and lift the lid."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import over, pick, script
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.parts import add_box, add_fixture, add_ring, add_rod, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask
from maniple.sim.state import State

PAN_XY = (-0.026, 0.03)
HANDLE_RAD = -1.974
"""Where the handle points to, in the scene."""
KNOB_M = 0.101
"""Height of the knob's middle above the table."""
SENSOR = ProximitySensor("pan", (0.0, 0.0, 0.2435), (0.05, 0.05, 0.0275))
BLACK, STEEL = (0.12, 0.12, 0.13, 1.0), (0.45, 0.46, 0.48, 1.0)


class TakeLidOffSaucepan(PandaTask):
    """Take the lid off the saucepan."""

    corners = ((-0.17, -0.27), (0.09, 0.145))
    reached = tuple((*PAN_XY, DOWN_M + z) for z in (0.1, 0.27))
    bodies = ("pan", "lid")
    graspable = ("lid",)
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return [
            "take lid off the saucepan",
            "using the handle, lift the lid off of the pan",
            "remove the lid from the pan",
            "grip the saucepan's lid and remove it from the pan",
            "leave the pan open",
            "uncover the saucepan",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a pan of 23 cm with a handle of 21 cm, and a lid with a knob of 6 x 6 x 2 cm."""
        pan = add_fixture(spec, "pan")
        add_rod(pan, 0.108, 0.004, (0, 0, 0.004), BLACK)
        add_ring(pan, 0.105, 0.008, 0.036, (0, 0, 0.038), BLACK, sides=12)
        add_box(pan, (0.102, 0.012, 0.008), (0.2223, 0, 0.0775), BLACK)
        add_box(pan, (0.010, 0.012, 0.007), (0.118, 0, 0.0645), BLACK)
        lid = add_thing(spec, "lid")
        add_rod(lid, 0.114, 0.004, (0, 0, -0.022), STEEL, 0.06)
        add_rod(lid, 0.012, 0.006, (0, 0, -0.012), BLACK, 0.01)
        add_box(lid, (0.03, 0.03, 0.01), (0, 0, 0), BLACK, 0.05)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the pan anywhere, the lid on it."""
        return {"pan": on(base, (*PAN_XY, 0), HANDLE_RAD), "lid": on(base, (*PAN_XY, KNOB_M))}

    def aim(self, s: State) -> NDArray:
        """The knob."""
        return s.pos("lid")

    def progress(self, s: State) -> NDArray:
        """Grasped, then raised."""
        height = s.pos("lid")[:, 2] - s.pos("pan")[:, 2] - KNOB_M
        return 0.3 * is_held(s, 0) + 0.7 * np.clip(height / 0.115, 0.0, 1.0)

    def success(self, s: State) -> NDArray[np.bool_]:
        """The held lid in a box that begins 11 cm above where it was."""
        return SENSOR.detects(s, "lid") & is_held(s, 0)


expert = script(TakeLidOffSaucepan, pick(over("lid"), lift_m=0.17))
