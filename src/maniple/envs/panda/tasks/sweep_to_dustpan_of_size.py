"""SweepToDustpanOfSize: sweep five crumbs into the tall or the short dustpan."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import SHUT, Goal, Observed, Waypoint, down, over, pick, script
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.named import named
from maniple.envs.panda.parts import NO_BITS, add_box, add_fixture, add_rod, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask
from maniple.sim.rotation import quat_yaw
from maniple.sim.state import State

SIZES = ("tall", "short")
DIRT = tuple(f"dirt{k}" for k in range(5))
DIRT_XY = ((0.05, -0.05), (0.025, 0.0), (0.0, -0.05), (0.05, 0.0), (0.0, -0.075))
SENSORS = [
    ProximitySensor("pans", (0.0, -0.275, 0.0275), (0.125, 0.075, 0.0275)),
    ProximitySensor("pans", (0.041, 0.188, 0.0165), (0.075, 0.045, 0.0165)),
]
TOP_M = 0.27
"""Height of the broom's handle."""
BLACK, BROWN = (0.14, 0.14, 0.15, 1.0), (0.46, 0.31, 0.2, 1.0)


class SweepToDustpanOfSize(PandaTask):
    """Sweep the dirt to the dustpan of the named size."""

    variations = 2
    corners = ((-0.2, -0.42), (0.17, 0.42))
    reached = ((-0.12, 0.3, DOWN_M + 0.3), (0.02, 0.13, 0.5), (0.02, -0.21, 0.5))
    bodies = ("broom", "pans", *DIRT)
    graspable = ("broom",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        size = SIZES[variation]
        return [
            f"sweep dirt to the {size} dustpan",
            f"sweep the dirt up into the {size} dustpan",
            f"use the broom to brush the dirt into the {size} dustpan",
            f"clean up the dirt with the {size} pan",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a broom 26 cm wide, two pans on poles that face each other, and crumbs of 1 cm."""
        pans = add_fixture(spec, "pans")
        _add_pan(pans, (0.0, -0.30), (0.137, 0.109), 0.083, 1.0)
        _add_pan(pans, (0.043, 0.203), (0.082, 0.065), 0.05, -1.0)
        add_rod(pans, 0.0105, 0.2975, (0.010, -0.330, 0.384), BLACK, bits=NO_BITS)
        add_rod(pans, 0.006, 0.1785, (0.050, 0.221, 0.231), BLACK, bits=NO_BITS)
        broom = add_thing(spec, "broom")
        add_box(broom, (0.131, 0.020, 0.022), (0, 0, 0.022), (0.85, 0.75, 0.3, 1), 0.15)
        add_rod(broom, 0.012, 0.11, (0, 0, 0.155), BROWN, 0.05)
        for name in DIRT:
            half = (0.005, 0.005, 0.005)
            add_box(add_thing(spec, name), half, rgba=(0.46, 0.31, 0.31, 1), kg=0.002)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Stand the broom at the side; the crumbs lie between the pans."""
        places = {"pans": on(base, (0, 0, 0)), "broom": on(base, (-0.12, 0.30, 0.001), np.pi / 2)}
        for name, (x, y) in zip(DIRT, DIRT_XY, strict=True):
            jitter = rng.uniform(-0.008, 0.008, (2,))
            offset = np.concatenate([[x, y] + jitter, np.full((len(rng), 1), 0.006)], axis=1)
            places[name] = on(base, offset)
        return places

    def aim(self, s: State) -> NDArray:
        """The broom's handle."""
        return s.pos("broom") + [0.0, 0.0, TOP_M - 0.03]

    def progress(self, s: State) -> NDArray:
        """Broom in hand, then crumbs in the pan."""
        return 0.3 * is_held(s, 0) + 0.7 * self._swept(s).mean(1)

    def success(self, s: State) -> NDArray[np.bool_]:
        """All five in the pan."""
        return np.asarray(self._swept(s).all(1))

    def _swept(self, s: State) -> NDArray[np.bool_]:
        found = [np.stack([sensor.detects(s, name) for name in DIRT], 1) for sensor in SENSORS]
        return named(s, found)


def _add_pan(
    pans: mujoco.MjsBody,
    xy: tuple[float, float],
    half: tuple[float, float],
    height: float,
    opens: float,
) -> None:
    """Add a pan without a lip: walls behind and beside, a floor that is only seen."""
    x, y = xy
    add_box(pans, (*half, 0.001), (x, y, 0.001), BLACK, bits=NO_BITS)
    add_box(pans, (half[0], 0.003, height / 2), (x, y - opens * half[1], height / 2), BLACK)
    for side in (-1, 1):
        at = (x + side * half[0], y - opens * half[1] * 0.55, height / 2)
        add_box(pans, (0.003, half[1] * 0.45, height / 2), at, BLACK)


def _sweep(begins: bool, up_m: float):
    """Goal of the handle behind the crumbs, or at the named pan."""
    x, tip_m = 0.022, TOP_M - 0.03
    behind, at_pan = np.array([0.075, -0.15]), np.array([-0.215, 0.135])

    def goal(observed: Observed) -> Goal:
        y = (behind if begins else at_pan)[observed.variation]
        offset = np.stack([np.full_like(y, x), y, np.full_like(y, tip_m + up_m)], 1)
        return observed.point("pans", offset), down(quat_yaw(observed.quat("pans")) + np.pi / 2)

    return goal


expert = script(
    SweepToDustpanOfSize,
    pick(over("broom", (0, 0, TOP_M - 0.03), np.pi / 2, np.pi), lift_m=0.06),
    Waypoint(_sweep(True, 0.06), SHUT, tolerance_m=0.015),
    Waypoint(_sweep(True, 0.002), SHUT, 1, 0.006),
    Waypoint(_sweep(False, 0.002), SHUT, step_m=0.02),
)
