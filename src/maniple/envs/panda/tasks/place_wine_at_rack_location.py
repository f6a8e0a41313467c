"""PlaceWineAtRackLocation: lay a bottle into one of a rack's places."""

from __future__ import annotations

from math import pi

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
    over,
    pick,
    release,
    script,
)
from maniple.envs.panda.grasp import is_held, nothing_held
from maniple.envs.panda.named import named
from maniple.envs.panda.parts import add_box, add_fixture, add_rod, add_thing
from maniple.envs.panda.placement import on
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.rotation import quat_mul
from maniple.sim.state import State, norm

PLACES = ("middle", "left", "right")
PLACES_X_M = (0.0, 0.119, -0.116)
RADIUS_M, HALF_M, NECK_M = 0.03, 0.123, 0.104
FLOOR_M = 0.080
"""Height of the rack's boards, on which a bottle lies."""
SENSORS = [ProximitySensor("rack", (x, -0.0025, 0.113), (0.02, 0.1025, 0.02)) for x in PLACES_X_M]
# Pointing to +y, a quarter turn from pointing down.
ALONG = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
WOOD, GLASS = (0.72, 0.55, 0.35, 1.0), (0.15, 0.35, 0.20, 1.0)


class PlaceWineAtRackLocation(PandaTask):
    """Stack the wine bottle in the named place of the rack."""

    yaw = (-pi / 4, pi / 4)
    variations = 3
    episode_steps = 250
    corners = ((-0.12, -0.32), (0.22, 0.40))
    reached = ((0.099, -0.284, DOWN_M + 0.26), *((0.05 + x, -0.15, 0.25) for x in PLACES_X_M))
    bodies = ("bottle", "rack")
    graspable = ("bottle",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        name = PLACES[variation]
        return [
            f"stack the wine bottle to the {name} of the rack",
            f"slide the bottle onto the {name} part of the rack",
            f"put the wine on the {name}",
            f"leave the wine on the {name} section of the shelf",
            f"grasp the bottle and put it away on the {name}",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add a rack of 33 x 24 cm with three places, and a bottle of 6 x 25 cm."""
        rack = add_fixture(spec, "rack")
        add_box(rack, (0.169, 0.121, 0.006), (0, 0, FLOOR_M - 0.006), WOOD)
        for x in (-0.165, -0.058, 0.0595, 0.165):
            add_box(rack, (0.004, 0.121, 0.06), (x, 0, 0.06), WOOD)
        bottle = add_thing(spec, "bottle")
        add_rod(bottle, RADIUS_M, 0.078, (0, 0, -0.045), GLASS, 0.3)
        add_rod(bottle, 0.021, 0.012, (0, 0, 0.043), GLASS, 0.03)
        add_rod(bottle, 0.0135, 0.036, (0, 0, 0.087), GLASS, 0.03)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Stand the bottle on the other side."""
        return {"rack": on(base, (0.05, 0.275, 0)), "bottle": on(base, (0.099, -0.284, HALF_M))}

    def aim(self, s: State) -> NDArray:
        """The bottle's neck."""
        return s.pos("bottle") + NECK_M * s.mat("bottle")[:, :, 2]

    def progress(self, s: State) -> NDArray:
        """Bottle in hand, then near its place."""
        place = named(s, [sensor.centre_w(s) for sensor in SENSORS])
        return 0.3 * is_held(s, 0) + 0.7 * near(norm(s.pos("bottle") - place), 0.2)

    def success(self, s: State) -> NDArray[np.bool_]:
        """A part of the bottle in its place, and none in the gripper."""
        found = named(s, [sensor.detects(s, "bottle") for sensor in SENSORS])
        return found & nothing_held(s)


def _before(y_m: float, up_m: float = 0.0):
    """Goal with the neck at a distance from the rack's middle, the bottle ahead of the hand."""

    def goal(observed: Observed) -> Goal:
        x = np.array(PLACES_X_M)[observed.variation]
        z = FLOOR_M + RADIUS_M + 0.006 + up_m
        offset = np.stack([x, np.full_like(x, y_m), np.full_like(x, z)], 1)
        return observed.point("rack", offset), quat_mul(observed.quat("rack"), ALONG)

    return goal


expert = script(
    PlaceWineAtRackLocation,
    pick(over("bottle", (0, 0, NECK_M)), lift_m=0.06),
    Waypoint(_before(-0.40, 0.12), SHUT, tolerance_m=0.02, step_m=0.03, step_rad=0.15),
    Waypoint(_before(-0.38), SHUT, tolerance_m=0.01),
    Waypoint(_before(-0.16), SHUT, tolerance_m=0.012, step_m=0.03),
    release(4),
    Waypoint(_before(-0.35), OPEN),
)
