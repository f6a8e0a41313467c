"""PutItemInDrawer: open a drawer and put the block on top of the chest into it."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.drawers import HANDLE_Z_M, JOINTS, NAMES, DrawerTask, handle, opened_m
from maniple.envs.panda.expert import (
    OPEN,
    SHUT,
    Goal,
    Observed,
    Waypoint,
    close,
    down,
    over,
    pick,
    raised,
    release,
    script,
    shifted,
)
from maniple.envs.panda.grasp import is_held
from maniple.envs.panda.named import named
from maniple.envs.panda.parts import add_box, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import near
from maniple.sim.rotation import quat_yaw
from maniple.sim.state import State, norm

CHEST_XY = (0.025, -0.175)
TOP_M = 0.486
# RLBench has the middle one 3 cm higher in its drawer than the others.
SENSORS = [
    ProximitySensor(joint, (0.0, 0.023, z), (0.15, 0.15, 0.041))
    for joint, z in zip(JOINTS, (-0.0125, 0.0175, -0.008), strict=True)
]


class PutItemInDrawer(DrawerTask):
    """Put the item in the named drawer."""

    episode_steps = 300
    corners = ((-0.165, -0.365), (0.215, 0.041))
    reached = (*((0.025, 0.45, z) for z in HANDLE_Z_M), (0.05, -0.15, 0.78), (0.025, 0.1, 0.72))
    bodies = ("drawers", "item")
    graspable = ("item",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = NAMES[variation]
        return [
            f"put item in {name} drawer",
            f"put the block away in the {name} drawer",
            f"open the {name} drawer and place the block inside of it",
            f"leave the block in the {name} drawer",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add the chest and a block of 4 cm."""
        super().furnish(spec)
        add_box(add_thing(spec, "item"), (0.02, 0.02, 0.02), rgba=(0.3, 0.35, 0.75, 1), kg=0.064)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the chest somewhere, the block on it."""
        return {"drawers": on(base, (*CHEST_XY, 0)), "item": on(base, (0.05, -0.15, TOP_M))}

    def aim(self, s: State) -> NDArray:
        """The handle until the drawer is open, then the item."""
        is_open = opened_m(s) > 0.12
        return np.where(is_open[:, None], s.pos("item"), super().aim(s))

    def progress(self, s: State) -> NDArray:
        """Drawer open, block in hand, block near the drawer."""
        opened = np.clip(opened_m(s) / 0.15, 0, 1)
        inside = named(s, [sensor.centre_w(s) for sensor in SENSORS])
        gap = norm(s.pos("item") - inside)
        return 0.3 * opened + 0.2 * is_held(s, 0) + 0.5 * opened * near(gap, 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the block in the drawer's box of 30 x 30 x 8 cm."""
        return named(s, [sensor.detects(s, "item") for sensor in SENSORS])


def _over_drawer(up_m: float):
    """Goal above the open part of the named drawer, or `up_m` above the table if that is more."""

    def goal(observed: Observed) -> Goal:
        opened = observed.choose(observed.variation, [observed.joint(joint) for joint in JOINTS])
        z = np.maximum(np.array(HANDLE_Z_M)[observed.variation] + 0.035, up_m)
        offset = np.stack([np.zeros_like(z), 0.105 + opened, z], 1)
        return observed.point("drawers", offset), down(quat_yaw(observed.quat("drawers")))

    return goal


expert = script(
    PutItemInDrawer,
    Waypoint(raised(handle(0.16), 0.08), OPEN, tolerance_m=0.03),
    Waypoint(handle(0.09), OPEN, tolerance_m=0.01),
    Waypoint(handle(0.0), OPEN, 1, step_m=0.03),
    close(),
    Waypoint(handle(0.2), SHUT, step_m=0.03),
    release(2),
    Waypoint(handle(0.27), OPEN, tolerance_m=0.02),
    Waypoint(_over_drawer(0.62), OPEN, tolerance_m=0.03),
    pick(over("item"), above_m=0.12, lift_m=0.12),
    Waypoint(_over_drawer(0.60), SHUT, tolerance_m=0.03),
    Waypoint(_over_drawer(0.0), SHUT, tolerance_m=0.012),
    release(4),
    Waypoint(shifted((0, 0, 0.1)), OPEN),
)
