"""OpenMicrowave: pull a microwave's door open."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import OPEN, SHUT, Waypoint, close, facing, script
from maniple.envs.panda.parts import add_box, add_fixture, add_moving
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import PandaTask
from maniple.sim.rotation import mat_rotate, quat_mul, yaw_quat
from maniple.sim.state import State

HINGE = (-0.27, -0.148, 0.138)
HANDLE = (0.434, -0.038, 0.02)
"""Middle of the handle in the door's frame."""
HALF_DOWN = np.array([np.cos(3 * pi / 8), 0.0, np.sin(3 * pi / 8), 0.0])
OPENED_RAD = np.deg2rad(80)
WHITE, DARK = (0.92, 0.92, 0.9, 1.0), (0.2, 0.2, 0.22, 1.0)


class OpenMicrowave(PandaTask):
    """Open the microwave."""

    yaw = (-pi / 8, pi / 8)
    corners = ((-0.26, -0.10), (0.32, 0.47))
    reached = ((0.194, -0.03, 0.34), (-0.34, -0.25, 0.34), (0.0, -0.2, 0.34))
    bodies = ("microwave",)
    joints = ("microwave_door",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return ["open microwave", "open the microwave door", "pull the microwave door open"]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a microwave of 57 x 28 x 31 cm; its door turns about a vertical edge."""
        oven = add_fixture(spec, "microwave")
        for z in (0.006, 0.308):
            add_box(oven, (0.285, 0.138, 0.006), (0, 0, z), WHITE)
        for x in (-0.279, 0.21, 0.279):
            add_box(oven, (0.006, 0.138, 0.15), (x, 0, 0.157), WHITE)
        add_box(oven, (0.285, 0.006, 0.15), (0, 0.132, 0.157), WHITE)
        add_box(oven, (0.035, 0.006, 0.15), (0.245, -0.135, 0.157), WHITE)
        door = add_moving(
            oven, "microwave_door", HINGE, (0, 0, -1), (0.0, pi / 2), damping=0.3, friction=0.05
        )
        add_box(door, (0.231, 0.010, 0.132), (0.235, 0, 0.0), DARK, 0.3)
        add_box(door, (0.006, 0.006, 0.09), (HANDLE[0], HANDLE[1], 0.02), WHITE, 0.02, friction=1.5)
        for z in (-0.06, 0.10):
            add_box(door, (0.005, 0.014, 0.006), (HANDLE[0], -0.024, z), WHITE, 0.01)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the microwave somewhere, shut."""
        return {"microwave": on(base, (0.03, 0.33, 0))}

    def aim(self, s: State) -> NDArray:
        """The handle."""
        return s.pos("microwave_door") + mat_rotate(s.mat("microwave_door"), np.array([HANDLE]))

    def progress(self, s: State) -> NDArray:
        """How far it is open."""
        return s.joint("microwave_door") / OPENED_RAD

    def success(self, s: State) -> NDArray[np.bool_]:
        """Eighty degrees."""
        return s.joint("microwave_door") > OPENED_RAD


def _handle(angle_rad: float, out_m: float = 0.0):
    """Goal at the handle of a door that is open by an angle, or before it, from half above."""
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    x, y, z = HANDLE[0], HANDLE[1] - out_m, HANDLE[2] + out_m
    offset = (HINGE[0] + cos * x + sin * y, HINGE[1] - sin * x + cos * y, HINGE[2] + z)
    turn = quat_mul(yaw_quat(pi / 2 - angle_rad), HALF_DOWN)
    return facing("microwave", offset, turn.tolist())


expert = script(
    OpenMicrowave,
    Waypoint(_handle(0.0, 0.08), OPEN, tolerance_m=0.012),
    Waypoint(_handle(0.0), OPEN, 1, 0.005, 0.03),
    close(),
    *(Waypoint(_handle(a), SHUT, tolerance_m=0.02, step_m=0.03) for a in np.arange(0.2, 1.7, 0.2)),
)
