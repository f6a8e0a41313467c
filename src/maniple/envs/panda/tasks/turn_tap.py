"""TurnTap: turn the left or the right tap."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import (
    OPEN,
    SHUT,
    Goal,
    Observed,
    Waypoint,
    close,
    down,
    raised,
    script,
)
from maniple.envs.panda.named import named
from maniple.envs.panda.parts import add_box, add_fixture, add_moving, add_rod
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import DOWN_M, PandaTask
from maniple.sim.rotation import quat_mul, quat_yaw, yaw_quat
from maniple.sim.state import State

NAMES = ("left", "right")
TAPS = ("left_tap", "right_tap")
TURNED_RAD = 1.57
SIDE_M, KNOB_M = 0.11, 0.13
"""How far each tap is from the middle, and how high."""
STEEL = (0.68, 0.70, 0.72, 1.0)


class TurnTap(PandaTask):
    """Turn the named tap."""

    variations = 2
    corners = ((-0.16, -0.16), (0.16, 0.10))
    reached = tuple((x, 0.0, DOWN_M + z) for x in (-SIDE_M, SIDE_M) for z in (0.12, 0.22))
    bodies = ("basin",)
    joints = TAPS

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = NAMES[variation]
        return [f"turn {name} tap", f"rotate the {name} tap", f"grasp the {name} tap and turn it"]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a spout between two taps, each a bar of 6 cm on a post."""
        basin = add_fixture(spec, "basin")
        add_box(basin, (0.15, 0.04, 0.015), (0, 0, 0.015), (0.9, 0.9, 0.9, 1))
        add_rod(basin, 0.016, 0.055, (0, 0, 0.085), STEEL)
        add_box(basin, (0.014, 0.06, 0.012), (0, -0.06, 0.146), STEEL)
        for name, x in zip(TAPS, (-SIDE_M, SIDE_M), strict=True):
            add_rod(basin, 0.014, 0.04, (x, 0, 0.065), STEEL)
            knob = add_moving(
                basin, name, (x, 0, KNOB_M), (0, 0, 1), (-2.2, 2.2), damping=0.05, friction=0.05
            )
            add_box(knob, (0.032, 0.008, 0.016), (0, 0, 0), (0.85, 0.3, 0.2, 1), 0.05, friction=1.5)
            add_rod(knob, 0.006, 0.012, (0, 0, -0.014), STEEL, 0.05)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the basin somewhere, both taps shut."""
        return {"basin": on(base, (0, 0, 0))}

    def aim(self, s: State) -> NDArray:
        """The tap."""
        return named(s, [s.pos(name) for name in TAPS])

    def progress(self, s: State) -> NDArray:
        """How far it is turned."""
        return np.abs(named(s, [s.joint(name) for name in TAPS])) / TURNED_RAD

    def success(self, s: State) -> NDArray[np.bool_]:
        """A quarter turn, to either side."""
        return self.progress(s) > 1.0


def _knob(observed: Observed) -> Goal:
    side = np.where(observed.variation == 0, -SIDE_M, SIDE_M)
    offset = np.stack([side, np.zeros_like(side), np.full_like(side, KNOB_M)], 1)
    return observed.point("basin", offset), down(quat_yaw(observed.quat("basin")))


def _turned(observed: Observed) -> Goal:
    """A little more than a quarter turn, back over where the wrist is straight."""
    pos, start = _knob(observed)
    folded = (quat_yaw(observed.quat("basin")) + np.pi / 2) % np.pi - np.pi / 2
    return pos, quat_mul(yaw_quat(np.where(folded > 0, -1.72, 1.72)), start)


expert = script(
    TurnTap,
    Waypoint(raised(_knob, 0.09), OPEN, tolerance_m=0.01),
    Waypoint(_knob, OPEN, 1),
    close(),
    Waypoint(_turned, SHUT, step_rad=0.15),
)
