"""RLBench's push button: a base of 10 cm, and a plate that goes down 7 mm against a spring."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.envs.panda.parts import Rgba, add_box, add_fixture, add_moving
from maniple.envs.panda.table import PandaTask
from maniple.sim.paint import add_paint
from maniple.sim.state import State

PLATE: Rgba = (0.0, 0.7, 0.0, 1.0)
PRESSED_M = 0.003
TOP_M = 0.0265
"""Where the plate's surface is, above the table."""


class ButtonTask(PandaTask):
    """Press the button called 'button'."""

    episode_steps = 100
    joints = ("button_joint",)

    def aim(self, s: State) -> NDArray:
        """The plate."""
        return s.pos("button") + [0.0, 0.0, TOP_M]

    def progress(self, s: State) -> NDArray:
        """How far it is down."""
        return depth_m(s, "button") / PRESSED_M

    def success(self, s: State) -> NDArray[np.bool_]:
        """Three millimetres down."""
        return depth_m(s, "button") > PRESSED_M


def add_button(
    spec: mujoco.MjSpec, name: str, half_m: float = 0.05, plate_m: float = 0.028, paints=True
) -> None:
    """Add a button; its joint is called `<name>_joint`, and its base can be painted."""
    body = add_fixture(spec, name)
    # Joined to nothing that moves: the base is where an episode puts it.
    add_box(body, (half_m, half_m, 0.009), (0, 0, 0.009), (0.1, 0.1, 0.1, 1), name=name)
    plate = add_moving(
        body, f"{name}_joint", (0, 0, 0.0235), (0, 0, 1), (-0.007, 0.003), slides=True,
        damping=3.0, spring=300.0,
    )  # fmt: skip
    add_box(plate, (plate_m, plate_m, 0.003), (0, 0, 0), PLATE, 0.07)
    if paints:
        add_paint(spec, name)


def depth_m(s: State, name: str) -> NDArray:
    """How far a button is pressed, (rows,)."""
    return -s.joint(f"{name}_joint")
