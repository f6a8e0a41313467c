"""ToiletSeatDown: push a toilet's seat over and down."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import SHUT, Waypoint, over, script
from maniple.envs.panda.parts import add_box, add_fixture, add_moving, add_rod
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import DOWN_M, PandaTask
from maniple.sim.rotation import mat_rotate
from maniple.sim.state import State

HINGE = (0.034, 0.0, 0.237)
UP_RAD, MOVED_RAD = 1.7453, 1.7
SEAT_M = 0.25
WHITE, GREY = (0.95, 0.95, 0.95, 1.0), (0.57, 0.57, 0.57, 1.0)


class ToiletSeatDown(PandaTask):
    """Put the toilet seat down."""

    yaw = (-pi / 4, pi / 4)
    corners = ((-0.22, -0.12), (0.19, 0.12))
    episode_steps = 70
    reached = ((0.1, 0.0, DOWN_M + 0.48), (-0.06, 0.0, DOWN_M + 0.44), (-0.2, 0.0, DOWN_M + 0.25))
    bodies = ("toilet",)
    joints = ("seat",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return [
            "toilet seat down",
            "put the toilet seat down",
            "grasping the top of the lid, close the toilet seat",
            "put the toilet lid down",
            "leave the toilet seat down",
            "close the lid on the toilet",
            "lower the toilet seat",
            "grip the edge of the toilet lid and lower it flat on the toilet seat",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a bowl, a tank, and a seat of 25 cm that turns about y, 100 degrees up."""
        toilet = add_fixture(spec, "toilet")
        add_rod(toilet, 0.075, 0.10, (-0.06, 0, 0.10), WHITE)
        add_rod(toilet, 0.105, 0.015, (-0.09, 0, 0.215), WHITE)
        add_box(toilet, (0.06, 0.08, 0.11), (0.05, 0, 0.11), WHITE)
        add_box(toilet, (0.0485, 0.10, 0.102), (0.1385, 0, 0.358), WHITE)
        add_box(toilet, (0.04, 0.06, 0.02), (0.14, 0, 0.24), WHITE)
        # So stiff that it stays where it is left: one knock must not be enough.
        seat = add_moving(
            toilet, "seat", HINGE, (0, 1, 0), (0.0, UP_RAD), damping=0.05, friction=0.3
        )
        for y in (-0.085, 0.085):
            add_box(seat, (0.1275, 0.026, 0.006), (-0.125, y, 0.006), GREY, 0.06)
        for x in (-0.03, -0.225):
            add_box(seat, (0.025, 0.06, 0.006), (x, 0, 0.006), GREY, 0.03)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the toilet somewhere, its seat up."""
        return {"toilet": on(base, (0, 0, 0)), "seat": np.full(len(rng), UP_RAD)}

    def aim(self, s: State) -> NDArray:
        """The seat's edge."""
        return s.pos("seat") + mat_rotate(s.mat("seat"), np.array([[-SEAT_M, 0.0, 0.0]]))

    def progress(self, s: State) -> NDArray:
        """How far it has come down."""
        return (UP_RAD - s.joint("seat")) / MOVED_RAD

    def success(self, s: State) -> NDArray[np.bool_]:
        """All but shut."""
        return self.progress(s) > 1.0


def _behind(x_m: float, z_m: float):
    return over("toilet", (x_m, 0.0, z_m), pi / 2, pi)


expert = script(
    ToiletSeatDown,
    Waypoint(_behind(0.112, 0.53), SHUT, tolerance_m=0.012),
    Waypoint(_behind(0.112, 0.471), SHUT, tolerance_m=0.006),
    Waypoint(_behind(-0.04, 0.471), SHUT, tolerance_m=0.01, step_m=0.03),
    Waypoint(_behind(-0.10, 0.44), SHUT, tolerance_m=0.02),
    Waypoint(_behind(-0.16, 0.38), SHUT, tolerance_m=0.02),
    Waypoint(_behind(-0.19, 0.32), SHUT, tolerance_m=0.02),
    Waypoint(_behind(-0.20, 0.235), SHUT),
)
