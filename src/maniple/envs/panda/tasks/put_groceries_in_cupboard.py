"""PutGroceriesInCupboard: put one of nine groceries into the cupboard."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.blocks import any_yaw
from maniple.envs.panda.expert import (
    OPEN,
    SHUT,
    Goal,
    Observed,
    Waypoint,
    close,
    down,
    raised,
    release,
    script,
    shifted,
)
from maniple.envs.panda.grasp import nothing_held
from maniple.envs.panda.named import is_named_held, named
from maniple.envs.panda.parts import add_box, add_fixture, add_rod, add_thing
from maniple.envs.panda.placement import SHOULDER, lying, on, scatter
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import PandaTask, near
from maniple.sim.rotation import quat_mul, quat_rotate, quat_yaw
from maniple.sim.state import State, norm

# Half sizes of boxes; radius and half height of tins.
GROCERIES: dict[str, tuple[tuple[float, ...], tuple[float, float, float]]] = {
    "crackers": ((0.045, 0.025, 0.050), (0.80, 0.15, 0.12)),
    "chocolate jello": ((0.040, 0.018, 0.035), (0.40, 0.22, 0.12)),
    "strawberry jello": ((0.040, 0.018, 0.035), (0.92, 0.35, 0.45)),
    "soup": ((0.031, 0.042), (0.85, 0.20, 0.15)),
    "tuna": ((0.034, 0.022), (0.20, 0.35, 0.65)),
    "spam": ((0.040, 0.025, 0.035), (0.15, 0.20, 0.55)),
    "coffee": ((0.034, 0.045), (0.30, 0.18, 0.10)),
    "mustard": ((0.030, 0.020, 0.050), (0.95, 0.80, 0.10)),
    "sugar": ((0.035, 0.020, 0.050), (0.95, 0.92, 0.80)),
}
NAMES = tuple(GROCERIES)
BODIES = tuple(name.replace(" ", "_") for name in NAMES)
HEIGHTS = np.array([2 * size[-1] for size, _ in GROCERIES.values()])
SENSOR = ProximitySensor("cupboard", (0.0, 0.0, 0.17), (0.12, 0.165, 0.15))
WOOD = (0.78, 0.68, 0.52, 1.0)
# Half down, half into the cupboard, which opens to -x.
INTO = np.array([np.cos(3 * np.pi / 8), 0.0, np.sin(3 * np.pi / 8), 0.0])


class PutGroceriesInCupboard(PandaTask):
    """Put the named groceries in the cupboard."""

    yaw = (-1.0, 1.0)
    variations = len(NAMES)
    episode_steps = 250
    corners = ((-0.20, -0.32), (0.40, 0.32))
    reached = ((-0.02, 0.0, 0.42), (0.02, 0.0, 0.35), (-0.12, 0.2, 0.27), (-0.12, -0.2, 0.27))
    bodies = (*BODIES, "cupboard")
    graspable = BODIES

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = NAMES[variation]
        return [
            f"put the {name} in the cupboard",
            f"pick up the {name} and place it in the cupboard",
            f"move the {name} to the bottom shelf",
            f"put away the {name} in the cupboard",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a cupboard of 26 x 36 x 36 cm, five boxes and four tins."""
        cupboard = add_fixture(spec, "cupboard")
        for y in (-0.18, 0.18):
            add_box(cupboard, (0.13, 0.006, 0.18), (0, y, 0.18), WOOD)
        add_box(cupboard, (0.006, 0.18, 0.18), (0.13, 0, 0.18), WOOD)
        for z in (0.006, 0.354):
            add_box(cupboard, (0.13, 0.18, 0.006), (0, 0, z), WOOD)
        for body, (size, rgb) in zip(BODIES, GROCERIES.values(), strict=True):
            thing = add_thing(spec, body)
            if len(size) == 2:
                add_rod(thing, *size, rgba=(*rgb, 1.0), kg=0.1)
            else:
                add_box(thing, size, rgba=(*rgb, 1.0), kg=0.1)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Stand the groceries before the cupboard."""
        places = {"cupboard": on(base, (0.25, 0, 0))}
        spots = scatter(rng, base, len(BODIES), (-0.16, -0.30), (0.03, 0.30), 0.11, wrist_m=0.3)
        spots = _with_room_for(variation, base, spots)
        for k, body in enumerate(BODIES):
            places[body] = lying(base, spots[:, k], HEIGHTS[k] / 2, any_yaw(rng))
        return places

    def aim(self, s: State) -> NDArray:
        """The groceries."""
        return named(s, [s.pos(b) for b in BODIES])

    def progress(self, s: State) -> NDArray:
        """In hand, then near the cupboard."""
        return 0.3 * is_named_held(s) + 0.7 * near(norm(self.aim(s) - SENSOR.centre_w(s)), 0.25)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of it in the cupboard, and none in the gripper."""
        found = named(s, [SENSOR.detects(s, b) for b in BODIES])
        return found & nothing_held(s)


def _with_room_for(index: NDArray, base: NDArray, spots: NDArray) -> NDArray:
    """Give the wanted thing the loneliest place: the hand is 20 cm wide."""
    level = np.concatenate([spots, np.zeros((*spots.shape[:2], 1))], -1)
    out = base[:, None, :3] + quat_rotate(base[:, None, 3:], level) - SHOULDER
    # Neither under the arm itself nor at the cupboard's very front.
    is_bad = (np.hypot(out[..., 0], out[..., 1]) < 0.42) | (spots[..., 0] > -0.03)
    way = spots[:, :, None] - spots[:, None]
    far = np.sqrt(way[..., 0] ** 2 + way[..., 1] ** 2) + 9.0 * np.eye(spots.shape[1])
    rows, best = np.arange(len(spots)), (far.min(2) - is_bad).argmax(1)
    swapped = spots.copy()
    swapped[rows, index], swapped[rows, best] = spots[rows, best], spots[rows, index]
    return swapped


def _top(observed: Observed) -> Goal:
    """Near the top of the named groceries, the fingers across their thin side."""
    pos = observed.choose(observed.variation, [observed.pos(b) for b in BODIES]).copy()
    pos[:, 2] += np.maximum(HEIGHTS[observed.variation] / 2 - 0.022, 0.0)
    turn = observed.choose(observed.variation, [observed.quat(b) for b in BODIES])
    return pos, down(quat_yaw(turn))


def _inside(depth_m: float, up_m: float):
    """Goal before the cupboard, or in it by `depth_m`."""

    def goal(observed: Observed) -> Goal:
        offset = (-0.13 + depth_m, 0.0, up_m)
        return observed.point("cupboard", offset), quat_mul(observed.quat("cupboard"), INTO)

    return goal


expert = script(
    PutGroceriesInCupboard,
    Waypoint(raised(_top, 0.40), OPEN, tolerance_m=0.05),
    Waypoint(raised(_top, 0.12), OPEN, tolerance_m=0.012),
    Waypoint(_top, OPEN, 1, 0.004, 0.03),
    close(),
    Waypoint(shifted((0, 0, 0.2)), SHUT, tolerance_m=0.02),
    Waypoint(_inside(-0.06, 0.24), SHUT, tolerance_m=0.03),
    Waypoint(_inside(0.05, 0.16), SHUT, tolerance_m=0.015, step_m=0.03),
    release(6),
    Waypoint(_inside(-0.1, 0.3), OPEN),
)
