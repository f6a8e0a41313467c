"""The torques with which the arm's joints carry the arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.sim.robots.panda import FINGERS, JOINTS
from maniple.sim.state import State

GRAVITY = 9.81


class ArmLoad:
    """Masses of a serial arm, from the first link outwards.

    The simulation takes the arm's weight away (`gravcomp`), as RLBench's servos carry it without
    sagging; but a sensor in a joint feels it.
    """

    def __init__(self, s: State) -> None:
        model = s.model
        self._state = s
        self._joints = np.array([model.joint(name).id for name in JOINTS])
        bodies = [int(model.jnt_bodyid[joint]) for joint in self._joints]
        bodies += [model.body(name).id for name in ("hand", *FINGERS)]
        self._bodies = np.array(bodies)
        self._mass = model.body_mass[self._bodies]
        self._beyond = np.cumsum(self._mass[::-1])[::-1][: len(JOINTS)]
        """What hangs on each joint (kg)."""

    def is_of(self, s: State) -> bool:
        """Whether this is about a state of the same simulation."""
        return self._state is s

    def torques(self) -> NDArray:
        """Return the torque of every joint that holds the arm still, (rows, joints), N.m."""
        s = self._state
        centres = s.bind("xipos")[:, self._bodies, :2] * self._mass[:, None]
        # Added up from the hand inwards, body by body: equal bits at any number of rows.
        hanging = np.cumsum(centres[:, ::-1], axis=1)[:, ::-1][:, : len(self._joints)]
        axis = s.bind("xaxis")[:, self._joints]
        arm = hanging - self._beyond[:, None] * s.bind("xanchor")[:, self._joints, :2]
        return GRAVITY * (axis[..., 0] * arm[..., 1] - axis[..., 1] * arm[..., 0])
