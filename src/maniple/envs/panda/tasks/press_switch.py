"""PressSwitch: flick a switch on a wall."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import SHUT, Waypoint, facing, raised, script
from maniple.envs.panda.parts import add_box, add_fixture, add_moving
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import PandaTask
from maniple.sim.rotation import mat_rotate, yaw_quat
from maniple.sim.state import State

TURNED_RAD = 1.0
HINGE = (0.103, -0.12, 0.262)
LEAN_RAD = pi / 6
"""How far the rocker leans to -y at first, and to +y at the end."""
AHEAD = (np.cos(3 * pi / 8), 0.0, np.sin(3 * pi / 8), 0.0)
"""Pointing at the wall and half down, the fingers beside each other: straight ahead, close to
the table, joint 6 is at its limit."""
WHITE, GREY = (0.93, 0.93, 0.9, 1.0), (0.7, 0.7, 0.72, 1.0)
DARK = (0.2, 0.2, 0.22, 1.0)


class PressSwitch(PandaTask):
    """Press the switch."""

    # RLBench turns the wall all around and keeps what its planner reaches; so is this.
    yaw = (-pi / 3, pi / 3)
    episode_steps = 100
    corners = ((-0.02, -0.375), (0.12, 0.125))
    reached = ((-0.13, -0.22, 0.415), (-0.09, -0.09, 0.415), (-0.13, -0.22, 0.50))
    bodies = ("wall",)
    joints = ("switch",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return ["press switch", "turn the switch on or off", "flick the switch"]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a wall of 50 cm with a plate of 20 x 13 cm and a rocker that turns 60 degrees."""
        wall = add_fixture(spec, "wall")
        add_box(wall, (0.0125, 0.25, 0.25), (0.1125, -0.125, 0.25), WHITE)
        add_box(wall, (0.012, 0.1, 0.0665), (0.105, -0.131, 0.261), GREY)
        rocker = add_moving(
            wall, "switch", HINGE, (0, 0, -1), (0.0, pi / 3), damping=0.01, friction=0.03
        )
        rocker.quat = yaw_quat(LEAN_RAD)
        add_box(rocker, (0.016, 0.006, 0.011), (-0.0155, 0, 0), DARK, 0.05)
        add_box(rocker, (0.006, 0.0255, 0.011), (0.0035, 0, 0), DARK, 0.02)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the wall somewhere."""
        return {"wall": on(base, (0, 0, 0))}

    def aim(self, s: State) -> NDArray:
        """The rocker's end."""
        lever = np.array([[-0.031, 0.0, 0.0]])
        return s.pos("switch") + mat_rotate(s.mat("switch"), lever)

    def progress(self, s: State) -> NDArray:
        """How far it is turned."""
        return s.joint("switch") / TURNED_RAD

    def success(self, s: State) -> NDArray[np.bool_]:
        """One radian."""
        return s.joint("switch") > TURNED_RAD


def _beside(y_m: float, out_m: float = 0.0):
    return facing("wall", (HINGE[0] - 0.036 - out_m, HINGE[1] + y_m, HINGE[2]), AHEAD)


expert = script(
    PressSwitch,
    Waypoint(raised(_beside(-0.10, 0.04), 0.10), SHUT, tolerance_m=0.03),
    Waypoint(_beside(-0.10, 0.04), SHUT, tolerance_m=0.02),
    Waypoint(_beside(-0.10), SHUT, tolerance_m=0.008),
    Waypoint(_beside(0.035), SHUT, step_m=0.02),
)
