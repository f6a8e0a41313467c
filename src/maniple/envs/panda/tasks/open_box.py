"""OpenBox: lift a box's lid past the vertical."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.box import HINGE, LID_M, SHUT_RAD, add_lidded_box
from maniple.envs.panda.expert import OPEN, SHUT, close, script, swing
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import PandaTask
from maniple.envs.panda.tasks.close_box import lid_edge
from maniple.sim.state import State

MOVED_RAD = pi / 2


class OpenBox(PandaTask):
    """Open the box."""

    yaw = (-pi / 8, pi / 8)
    corners = ((-0.205, -0.28), (0.155, 0.0))
    reached = ((-0.025, 0.3, 0.15), (-0.025, 0.05, 0.55), (-0.025, -0.27, 0.63))
    bodies = ("box",)
    joints = ("box_joint",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return ["open box", "open the box lid", "open the box", "grasp the lid and open the box"]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add the box."""
        add_lidded_box(spec)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the box somewhere, shut."""
        return {"box": on(base, (-0.025, -0.15, 0)), "box_joint": np.full(len(rng), SHUT_RAD)}

    def aim(self, s: State) -> NDArray:
        """The lid's edge."""
        return lid_edge(s)

    def progress(self, s: State) -> NDArray:
        """How far it has come."""
        return (s.joint("box_joint") - SHUT_RAD) / MOVED_RAD

    def success(self, s: State) -> NDArray[np.bool_]:
        """A quarter turn."""
        return self.progress(s) > 1.0


_GRIP = LID_M - 0.006

expert = script(
    OpenBox,
    swing("box", HINGE, LID_M + 0.10, (0.4,), OPEN),
    swing("box", HINGE, LID_M + 0.05, (0.02,), OPEN),
    swing("box", HINGE, _GRIP, (0.02,), OPEN),
    close(),
    swing("box", HINGE, _GRIP, np.arange(0.3, 1.85, 0.25).tolist(), SHUT),
)
