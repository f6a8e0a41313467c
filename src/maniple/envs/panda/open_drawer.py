"""OpenDrawer: pull one of three drawers open."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.drawers import HANDLE_Y_M, HANDLE_Z_M, JOINTS, NAMES, add_drawers
from maniple.envs.panda.expert import OPEN, SHUT, Goal, Seen, Waypoint, close, raised, script
from maniple.envs.panda.spot import on
from maniple.envs.panda.stage import PandaTask
from maniple.sim.rotation import quat_mul
from maniple.sim.state import State

OPENED_M = 0.15
# The gripper comes along -y, its fingers above and below the handle.
SIDEWAYS = np.array([0.0, 0.0, np.sqrt(0.5), -np.sqrt(0.5)])


class OpenDrawer(PandaTask):
    """Open the named drawer."""

    yaw = (-pi / 8, pi / 8)
    variations = 3
    episode_steps = 120
    corners = ((-0.19, -0.19), (0.19, 0.216))
    reached = tuple((0.0, y, z) for y in (0.45, 0.62) for z in HANDLE_Z_M)
    bodies = ("drawers",)
    joints = JOINTS

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = NAMES[variation]
        return [
            f"open {name} drawer",
            f"grip the {name} handle and pull the {name} drawer open",
            f"slide the {name} drawer open",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add the chest."""
        add_drawers(spec)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the chest somewhere, all drawers shut."""
        return {"drawers": on(base, (0, 0, 0))}

    def aim(self, s: State) -> NDArray:
        """The handle."""
        return handle_pos(s)

    def progress(self, s: State) -> NDArray:
        """How far it is open."""
        return of_variation(s, [s.joint(joint) for joint in JOINTS]) / OPENED_M

    def success(self, s: State) -> NDArray[np.bool_]:
        """Fifteen centimetres."""
        return self.progress(s) > 1.0


def of_variation(s: State, options: list[NDArray]) -> NDArray:
    """Per row, what belongs to the drawer of its variation."""
    return np.stack(options)[s.note("variation").astype(np.intp), np.arange(s.rows)]


def handle_pos(s: State) -> NDArray:
    """Where the named drawer's handle is, (rows, 3)."""
    drawer = of_variation(s, [s.pos(joint) for joint in JOINTS])
    return drawer + HANDLE_Y_M * s.mat("drawers")[:, :, 1]


def handle(out_m: float):
    """Goal in front of the named drawer's handle."""

    def goal(seen: Seen) -> Goal:
        z = np.array(HANDLE_Z_M)[seen.variation]
        offset = np.stack([np.zeros_like(z), np.full_like(z, HANDLE_Y_M + out_m), z], 1)
        return seen.point("drawers", offset), quat_mul(seen.quat("drawers"), SIDEWAYS)

    return goal


expert = script(
    OpenDrawer,
    Waypoint(raised(handle(0.16), 0.08), OPEN, tolerance_m=0.03),
    Waypoint(handle(0.09), OPEN, tolerance_m=0.01),
    Waypoint(handle(0.0), OPEN, 1, step_m=0.03),
    close(),
    Waypoint(handle(0.2), SHUT, step_m=0.03),
)
