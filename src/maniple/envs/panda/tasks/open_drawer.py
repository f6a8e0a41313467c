"""OpenDrawer: pull one of three drawers open."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.drawers import HANDLE_Z_M, NAMES, DrawerTask, handle, opened_m
from maniple.envs.panda.expert import OPEN, SHUT, Waypoint, close, raised, script
from maniple.envs.panda.placement import on
from maniple.sim.state import State

OPENED_M = 0.15


class OpenDrawer(DrawerTask):
    """Open the named drawer."""

    episode_steps = 100
    corners = ((-0.19, -0.19), (0.19, 0.216))
    reached = tuple((0.0, y, z) for y in (0.45, 0.62) for z in HANDLE_Z_M)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = NAMES[variation]
        return [
            f"open {name} drawer",
            f"grip the {name} handle and pull the {name} drawer open",
            f"slide the {name} drawer open",
        ]

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the chest somewhere, all drawers shut."""
        return {"drawers": on(base, (0, 0, 0))}

    def progress(self, s: State) -> NDArray:
        """How far it is open."""
        return opened_m(s) / OPENED_M

    def success(self, s: State) -> NDArray[np.bool_]:
        """Fifteen centimetres."""
        return self.progress(s) > 1.0


expert = script(
    OpenDrawer,
    Waypoint(raised(handle(0.16), 0.08), OPEN, tolerance_m=0.03),
    Waypoint(handle(0.09), OPEN, tolerance_m=0.01),
    Waypoint(handle(0.0), OPEN, 1, step_m=0.03),
    close(),
    Waypoint(handle(0.2), SHUT, step_m=0.03),
)
