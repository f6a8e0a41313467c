"""CloseDrawer: push a drawer shut."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.drawers import HANDLE_Z_M, JOINTS, NAMES, DrawerTask, handle, opened_m
from maniple.envs.panda.expert import SHUT, Waypoint, raised, script
from maniple.envs.panda.placement import on
from maniple.sim.state import State

START_M, CLOSED_M = 0.1, 0.06


class CloseDrawer(DrawerTask):
    """Close the named drawer."""

    episode_steps = 40
    corners = ((-0.165, -0.19), (0.215, 0.216))
    reached = tuple((0.025, y, z) for y in (0.45, 0.62) for z in HANDLE_Z_M)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = NAMES[variation]
        return [f"close {name} drawer", f"shut the {name} drawer", f"slide the {name} drawer shut"]

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the chest somewhere, the named drawer ten centimetres open."""
        opened = {joint: START_M * (variation == k) for k, joint in enumerate(JOINTS)}
        return {"drawers": on(base, (0.025, 0, 0))} | opened

    def progress(self, s: State) -> NDArray:
        """How far it was pushed."""
        return (START_M - opened_m(s)) / CLOSED_M

    def success(self, s: State) -> NDArray[np.bool_]:
        """Six centimetres."""
        return self.progress(s) > 1.0


expert = script(
    CloseDrawer,
    Waypoint(raised(handle(0.20), 0.08), SHUT, tolerance_m=0.03),
    Waypoint(handle(0.16), SHUT, tolerance_m=0.015),
    Waypoint(handle(0.02), SHUT, step_m=0.03),
)
