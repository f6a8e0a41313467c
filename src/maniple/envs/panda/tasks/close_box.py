"""CloseBox: shut a box's lid."""

from __future__ import annotations

from math import pi

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.panda.box import HINGE, LID_M, OPEN_RAD, SHUT_RAD, add_lidded_box
from maniple.envs.panda.expert import OPEN, SHUT, close, release, script, swing
from maniple.envs.panda.placement import on
from maniple.envs.panda.table import PandaTask
from maniple.sim.rotation import mat_rotate
from maniple.sim.state import State

MOVED_RAD = 2.6


class CloseBox(PandaTask):
    """Close the box."""

    yaw = (-pi / 8, pi / 8)
    episode_steps = 120
    corners = ((-0.205, -0.26), (0.155, 0.23))
    reached = ((-0.025, -0.44, 0.40), (-0.025, -0.23, 0.50), (-0.025, 0.09, 0.57))
    bodies = ("box",)
    joints = ("box_joint",)

    def sentences(self, variation: int) -> list[str]:
        """As RLBench says it."""
        return ["close box", "close the lid on the box", "shut the box", "shut the box lid"]

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add the box."""
        add_lidded_box(spec)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Put the box somewhere, its lid thrown back."""
        return {"box": on(base, (-0.025, 0.1, 0)), "box_joint": np.full(len(rng), OPEN_RAD)}

    def aim(self, s: State) -> NDArray:
        """The lid's edge."""
        return lid_edge(s)

    def progress(self, s: State) -> NDArray:
        """How far it has come."""
        return (OPEN_RAD - s.joint("box_joint")) / MOVED_RAD

    def success(self, s: State) -> NDArray[np.bool_]:
        """All but shut."""
        return self.progress(s) > 1.0


def lid_edge(s: State) -> NDArray:
    """Where the lid's edge is, (rows, 3)."""
    return s.pos("box_joint") + mat_rotate(s.mat("box_joint"), np.array([[0.0, LID_M, 0.0]]))


_START = OPEN_RAD - SHUT_RAD
_GRIP = LID_M - 0.008

expert = script(
    CloseBox,
    swing("box", HINGE, LID_M + 0.08, (_START,), OPEN),
    swing("box", HINGE, _GRIP, (_START,), OPEN),
    close(),
    swing("box", HINGE, _GRIP, np.arange(_START - 0.3, 1.2, -0.3).tolist(), SHUT),
    release(2),
    swing("box", HINGE, LID_M + 0.09, (1.25,), OPEN),
    swing("box", HINGE, LID_M + 0.03, (1.6,), SHUT),
    swing("box", HINGE, LID_M - 0.02, (1.0, 0.6, 0.3), SHUT),
)
