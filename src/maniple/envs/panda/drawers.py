"""RLBench's chest of three drawers, which open along +y of its frame."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.envs.panda.expert import Goal, Observed
from maniple.envs.panda.named import named
from maniple.envs.panda.parts import Rgba, add_box, add_fixture, add_moving
from maniple.envs.panda.table import PandaTask
from maniple.sim.rotation import quat_mul
from maniple.sim.state import State

NAMES = ("bottom", "middle", "top")
JOINTS = tuple(f"drawer_{name}" for name in NAMES)
HANDLE_Z_M = (0.1633, 0.2834, 0.4034)
HANDLE_Y_M = 0.1955
"""Where a shut drawer's handle is."""
DEPTH_M = 0.3
WOOD: Rgba = (0.72, 0.624, 0.48, 1.0)
PALE: Rgba = (0.86, 0.81, 0.75, 1.0)
STEEL: Rgba = (0.55, 0.56, 0.58, 1.0)
# The gripper comes along -y, its fingers above and below the handle.
SIDEWAYS = np.array([0.0, 0.0, np.sqrt(0.5), -np.sqrt(0.5)])


class DrawerTask(PandaTask):
    """Do something with the named drawer."""

    yaw = (-pi / 8, pi / 8)
    variations = 3
    bodies = ("drawers",)
    joints = JOINTS

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add the chest."""
        add_drawers(spec)

    def aim(self, s: State) -> NDArray:
        """The handle."""
        drawer = named(s, [s.pos(joint) for joint in JOINTS])
        return drawer + HANDLE_Y_M * s.mat("drawers")[:, :, 1]


def opened_m(s: State) -> NDArray:
    """How far the named drawer is open, (rows,)."""
    return named(s, [s.joint(joint) for joint in JOINTS])


def handle(out_m: float):
    """Goal in front of the named drawer's handle."""

    def goal(observed: Observed) -> Goal:
        z = np.array(HANDLE_Z_M)[observed.variation]
        offset = np.stack([np.zeros_like(z), np.full_like(z, HANDLE_Y_M + out_m), z], 1)
        return observed.point("drawers", offset), quat_mul(observed.quat("drawers"), SIDEWAYS)

    return goal


def add_drawers(spec: mujoco.MjSpec) -> None:
    """Add the chest: a frame of 38 cm on feet, drawers 12 cm high on slides of 30 cm."""
    chest = add_fixture(spec, "drawers")
    # No two faces lie in one plane: which of them is seen there would be a matter of rounding.
    for x in (-0.188, 0.188):
        add_box(chest, (0.0033, 0.1858, 0.188), (x, -0.0045, 0.2775), WOOD)
        for y in (-0.16, 0.14):
            add_box(chest, (0.015, 0.015, 0.045), (x * 0.9, y, 0.045), (0.8, 0.8, 0.8, 1))
    add_box(chest, (0.1911, 0.0055, 0.188), (0, -0.1846, 0.2775), WOOD)
    for z in (0.0945, 0.4605):
        add_box(chest, (0.1915, 0.186, 0.0055), (0, -0.0045, z), WOOD)
    for joint, z in zip(JOINTS, HANDLE_Z_M, strict=True):
        # No dry friction: the solver would have to work in every step of an untouched drawer.
        _add_drawer(add_moving(
            chest, joint, (0, 0, z), (0, 1, 0), (0.0, DEPTH_M), slides=True, damping=6.0,
        ))  # fmt: skip


def _add_drawer(drawer: mujoco.MjsBody) -> None:
    """Add front, bottom, sides, back and a bar that fingers shut around."""
    add_box(drawer, (0.182, 0.005, 0.057), (0, 0.1765, 0.0), PALE, 0.1)
    add_box(drawer, (0.180, 0.167, 0.003), (0, 0.0045, -0.048), PALE, 0.1)
    for x in (-0.177, 0.177):
        add_box(drawer, (0.003, 0.167, 0.035), (x, 0.0045, -0.012), PALE, 0.04)
    add_box(drawer, (0.180, 0.003, 0.035), (0, -0.165, -0.012), PALE, 0.04)
    add_box(drawer, (0.055, 0.006, 0.006), (0, 0.204, 0.0), STEEL, 0.03, friction=1.5)
    for x in (-0.048, 0.048):
        add_box(drawer, (0.005, 0.012, 0.005), (x, 0.191, 0.0), STEEL, 0.005)
