"""ReachAndDrag: move a cube onto a square with a stick."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import other_colours
from maniple.envs.panda.expert import SHUT, Goal, Observed, Waypoint, over, pick, script
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.parts import add_box, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.envs.panda.tasks.slide_block_to_target import add_square
from maniple.sim.paint import COLOURS, add_paint
from maniple.sim.rotation import quat_rotate
from maniple.sim.state import State

CUBE_HALF_M, STICK_HALF_M = 0.04, 0.18
SENSOR = ProximitySensor("target", (0.0, 0.0, 0.0025), (0.05, 0.05, 0.0075))
SQUARES = ("target", "distractor0", "distractor1", "distractor2")
GRIP_M = 0.13
"""How far from the stick's middle it is held."""


class ReachAndDrag(PandaTask):
    """Use the stick to drag the cube onto the square of the named colour."""

    variations = len(COLOURS)
    corners = ((-0.205, -0.25), (0.2, 0.17))
    reached = tuple((x, 0.11, DOWN_M + z) for x in (0.19, -0.1) for z in (0.02, 0.1))
    bodies = ("stick", "cube", "target")
    graspable = ("stick",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"use the stick to drag the cube onto the {colour} target",
            f"pick up the stick and use it to push or pull the cube onto the {colour} target",
            f"drag the block towards the {colour} square on the table top",
            "grasping the stick by one end, pick it up and use the its other end to move the "
            f"block onto the {colour} target",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a cube of 8 cm, a stick of 36 cm, and four squares of 13 cm."""
        half = (CUBE_HALF_M,) * 3
        add_box(add_thing(spec, "cube"), half, rgba=(0.75, 0.75, 0.9, 1), kg=0.512, friction=0.5)
        thin = (0.0065, STICK_HALF_M, 0.0065)
        add_box(add_thing(spec, "stick"), thin, rgba=(0.55, 0.38, 0.2, 1), kg=0.059, friction=0.5)
        for name in SQUARES:
            add_square(spec, name, (1, 1, 1), 0.065)
            add_paint(spec, name)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Lay the stick beside the cube; the other squares lie around."""
        others = other_colours(rng, variation, 3)
        places = {
            "stick": on(base, (0.19, -0.02, 0.007)),
            "cube": on(base, (0.106, -0.15, CUBE_HALF_M), -1.396),
            "target": on(base, (-0.137, -0.154, 0.001)),
            "paint.target": variation,
        }
        for k, xy in enumerate(((0.106, -0.36), (0.32, -0.15), (0.0, 0.06))):
            places[f"distractor{k}"] = on(base, (*xy, 0.001))
            places[f"paint.distractor{k}"] = others[:, k]
        return places

    def aim(self, s: State) -> NDArray:
        """The stick."""
        return s.pos("stick")

    def progress(self, s: State) -> NDArray:
        """Stick in hand, then cube near the square."""
        return 0.2 * is_held(s, 0) + 0.8 * near(s.gap("cube", "target"), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the cube over the square."""
        return SENSOR.detects(s, "cube")


def _drag(observed: Observed) -> Goal:
    """The stick's side at the near edge of where the cube shall be."""
    frame = observed.quat("target")
    across = quat_rotate(frame, np.array([1.0, 0.0, 0.0]))
    need = ((observed.pos("target") - observed.tip) * across).sum(1, keepdims=True) + 0.045
    return observed.tip + across * need, observed.turn


expert = script(
    ReachAndDrag,
    pick(over("stick", (0, GRIP_M, 0), np.pi / 2, np.pi), lift_m=0.012),
    Waypoint(_drag, SHUT, step_m=0.03),
)
