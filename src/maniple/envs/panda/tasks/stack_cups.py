"""StackCups: put two cups into the cup of one colour."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import other_colours
from maniple.envs.panda.expert import (
    OPEN,
    SHUT,
    Goal,
    Observed,
    Waypoint,
    down,
    pick,
    release,
    script,
    shifted,
)
from maniple.envs.panda.grasp import nothing_held
from maniple.envs.panda.parts import add_box, add_rod, add_thing
from maniple.envs.panda.placement import lying, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import PandaTask, near
from maniple.sim.paint import COLOURS, add_paint
from maniple.sim.rotation import quat_rotate, quat_yaw, yaw_quat
from maniple.sim.state import State

CUPS = ("cup1", "cup2", "cup3")
FOOT_M, RIM_M, HEIGHT_M, WALL_M = 0.026, 0.045, 0.147, 0.003
SENSOR = ProximitySensor("cup2", (0.0, 0.0, 0.0615), (0.02, 0.02, 0.0525))
SIDES = 12


class StackCups(PandaTask):
    """Stack the other cups on top of the cup of the named colour."""

    variations = len(COLOURS)
    episode_steps = 250
    corners = ((-0.208, -0.30), (0.192, 0.30))
    reached = ((-0.12, 0, 0.5), (0.12, 0, 0.5), (0, 0.17, 0.5), (0, -0.17, 0.5))
    bodies = CUPS
    graspable = CUPS
    grasp = "contact"

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"stack the other cups on top of the {colour} cup",
            "place two of the cups onto the odd cup out",
            f"put the remaining two cups on top of the {colour} cup",
            f"pick up and set the cups down into the {colour} cup",
            f"create a stack of cups with the {colour} cup as its base",
            f"keeping the {colour} cup on the table, stack the other two onto it",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add three cups of 9 x 15 cm that fit into each other."""
        for name in CUPS:
            _add_cup(add_thing(spec, name), name)
            add_paint(spec, name)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Scatter the cups."""
        spots = scatter(rng, base, 3, (-0.16, -0.25), (0.15, 0.25), 0.16, wrist_m=0.5)
        others = other_colours(rng, variation, 2)
        places = {name: lying(base, spots[:, k], 0.001) for k, name in enumerate(CUPS)}
        paint = {"cup1": others[:, 0], "cup2": variation, "cup3": others[:, 1]}
        return places | {f"paint.{name}": colour for name, colour in paint.items()}

    def aim(self, s: State) -> NDArray:
        """The first cup that is not stacked yet."""
        is_done = SENSOR.detects(s, "cup1")[:, None]
        return np.where(is_done, s.pos("cup3"), s.pos("cup1")) + [0.0, 0.0, HEIGHT_M]

    def progress(self, s: State) -> NDArray:
        """How near both cups are."""
        return 0.5 * near(s.gap("cup1", "cup2"), 0.2) + 0.5 * near(s.gap("cup3", "cup2"), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """Parts of both cups in the third, and none in the gripper."""
        return SENSOR.detects(s, "cup1") & SENSOR.detects(s, "cup3") & nothing_held(s)


def _add_cup(cup: mujoco.MjsBody, name: str) -> None:
    """Make a cup of a foot and leaning boards."""
    lean = np.arctan2(RIM_M - FOOT_M, HEIGHT_M)
    middle = (FOOT_M + RIM_M) / 2 - WALL_M
    width = (RIM_M - 0.002) * np.tan(np.pi / SIDES)
    for k in range(SIDES):
        angle = 2 * np.pi * k / SIDES
        at = (middle * np.cos(angle), middle * np.sin(angle), HEIGHT_M / 2)
        half = (WALL_M / 2, width, HEIGHT_M / 2)
        add_box(cup, half, at, kg=0.003, name=f"{name}.{k}", friction=0.3,
                euler=(0.0, float(lean), float(angle)))  # fmt: skip
    add_rod(cup, FOOT_M - 0.004, 0.003, (0, 0, 0.003), kg=0.02, name=f"{name}.foot", friction=0.3)


_GRIP_Y_M, _GRIP_Z_M = RIM_M - 0.0055, HEIGHT_M - 0.016


def _rim(name: str, up_m: float):
    """Goal at a cup's rim, at the side that the hand needs not turn for."""

    def goal(observed: Observed) -> Goal:
        side = 2 * np.pi / SIDES
        yaw = (quat_yaw(observed.quat(name)) + side / 2) % side - side / 2
        offset = quat_rotate(yaw_quat(yaw), np.array([0.0, _GRIP_Y_M, _GRIP_Z_M + up_m]))
        return observed.pos(name) + offset, down(yaw)

    return goal


def _stack(name: str) -> list[Waypoint]:
    return [
        *pick(_rim(name, 0.0), lift_m=0.22),
        Waypoint(_rim("cup2", 0.21), SHUT, 1, 0.006),
        Waypoint(_rim("cup2", 0.085), SHUT, 1, 0.01, 0.025, 20),
        release(5),
        Waypoint(shifted((0, 0, 0.12)), OPEN, tolerance_m=0.03),
    ]


expert = script(StackCups, _stack("cup1"), _stack("cup3"))
