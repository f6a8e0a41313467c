"""ReachTarget: touch the ball of one colour among three."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.expert import SHUT, Observed, Waypoint, down, script
from maniple.envs.panda.parts import NO_BITS, add_ball, add_fixture
from maniple.envs.panda.placement import ELBOW_ROOM_M, FURTHEST_M, NEAREST_M, SHOULDER
from maniple.envs.panda.proximity import ProximitySensor
from maniple.envs.panda.table import DOWN_M, PandaTask, near
from maniple.sim.paint import COLOURS, add_paint
from maniple.sim.state import State

BALLS = ("target", "distractor0", "distractor1")
LOW, HIGH = np.array([0.0, -0.35, 0.777]), np.array([0.5, 0.35, 1.227])
GAP_M = 0.2
SENSOR = ProximitySensor("target", (0.0, 0.0, 0.0), (0.05, 0.05, 0.04))


class ReachTarget(PandaTask):
    """Reach the ball of the named colour."""

    variations = len(COLOURS)
    episode_steps = 60
    bodies = BALLS

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        colour = COLOURS[variation]
        return [
            f"reach the {colour} target",
            f"touch the {colour} ball with the panda gripper",
            f"reach the {colour} sphere",
        ]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add three balls of 5 cm."""
        for name in BALLS:
            add_ball(add_fixture(spec, name), 0.025, name=name, bits=NO_BITS)
            add_paint(spec, name)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the balls anywhere above the table, 20 cm from each other and within reach."""
        places: dict[str, NDArray] = {}
        rows = np.arange(len(rng))
        for name in BALLS:
            drawn = rng.uniform(LOW, HIGH, (24, 3))
            ok = _is_reached(drawn)
            for other in places.values():
                ok &= np.linalg.norm(drawn - other[:, None], axis=-1) > GAP_M
            places[name] = drawn[rows, np.argmax(ok, axis=1)]
        other = 1 + rng.permutation(len(COLOURS) - 1)[:, :2]
        paint = {"paint.target": variation}
        for k, name in enumerate(BALLS[1:]):
            paint[f"paint.{name}"] = (variation + other[:, k]) % len(COLOURS)
        return places | paint

    def aim(self, s: State) -> NDArray:
        """The ball."""
        return s.pos("target")

    def progress(self, s: State) -> NDArray:
        """The last centimetres count."""
        return near(s.gap("tip", "target"), 0.05)

    def success(self, s: State) -> NDArray[np.bool_]:
        """The tip in a box of 10 x 10 x 8 cm around the ball."""
        return SENSOR.has_point(s, s.pos("tip"))


def _is_reached(points: NDArray) -> NDArray[np.bool_]:
    """Points that the tip gets to while it points down."""
    x, y, z = np.moveaxis(points - SHOULDER + [0, 0, DOWN_M], -1, 0)
    far = np.hypot(np.hypot(x, y) - ELBOW_ROOM_M, z)
    return (far > NEAREST_M) & (far < FURTHEST_M) & (x > 0.05)


def _goal(observed: Observed):
    return observed.pos("target"), down(np.zeros(len(observed.tip)))


expert = script(ReachTarget, Waypoint(_goal, SHUT))
