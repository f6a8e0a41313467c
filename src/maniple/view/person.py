"""Turn what a person asks for into actions of any controller."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.rotation import mat_quat

TIP_STEPS = ("ee", "delta_ee", "delta_position")
TIP_POSES = ("ik", "planning")
ABSOLUTE = ("joint", "raw", "joint_position")
POSE_STEP_M, LEASH_M = 0.012, 0.04
"""How far the wanted pose moves in a step, and how far it may be ahead of the tip."""
JOINT_STEP = 0.04
"""How far an absolute servo target moves in a step (rad, m)."""


class Person:
    """Directions and a gripper, as an action of one row.

    Where the controller moves a fingertip, the directions are the tip's. Elsewhere left and right
    move one number of the action, `chosen`, and the others rest.
    """

    def __init__(self, mode: str, spec: ArraySpec, tip: str | None) -> None:
        """Learn the controller: its name, its action, and the tip's site (None: there is none)."""
        self.mode = mode if mode not in TIP_POSES or tip is not None else "numbers"
        self._spec, self._tip = spec, tip
        self._low, self._high = (np.broadcast_to(b, spec.shape) for b in spec.bounds())
        self._target: NDArray | None = None
        self.chosen = 0

    @property
    def moves_tip(self) -> bool:
        """Whether the directions are those of a fingertip."""
        return self.mode in TIP_STEPS + TIP_POSES

    @property
    def numbers(self) -> int:
        """How many numbers an action has."""
        return int(np.prod(self._spec.shape))

    def begin(self) -> None:
        """Forget the wanted pose or targets: the arm has moved since."""
        self._target = None

    def act(self, step: NDArray, is_open: bool, data: Any) -> NDArray:
        """Return the action of a row whose state is in `data`, an MjData.

        Args:
            step: Directions x y z, each from -1 to 1.
            is_open: Whether the gripper is open.
        """
        if self.mode == "ee":
            made = [*step, 1.0 if is_open else -1.0]
        elif self.mode == "delta_position":
            made = [*step, float(is_open)]
        elif self.mode == "delta_ee":
            made = [*step, 0.0, 0.0, 0.0, float(is_open)]
        elif self.mode in TIP_POSES:
            made = [*self._pose(step, data), float(is_open)]
        else:
            made = self._jogged(step, data)
        return self._fitted(np.asarray(made, np.float64))

    def is_open_in(self, action: NDArray) -> bool:
        """Tell whether an action opens the gripper: whoever takes over must not drop anything."""
        last = float(action.ravel()[-1])
        return last > (0.0 if self.mode == "ee" else 0.5)

    def rest(self, data: Any) -> NDArray:
        """Return the action with which a row stays where it is."""
        kept, self._target = self._target, None
        action = self.act(np.zeros(3), True, data)
        self._target = kept
        return action

    def _pose(self, step: NDArray, data: Any) -> NDArray:
        """The wanted pose of the tip, which is never far ahead of it."""
        site = data.site(self._tip)
        if self._target is None:
            w, x, y, z = mat_quat(site.xmat.reshape(3, 3))
            self._target = np.array([*site.xpos, x, y, z, w])
        lead = self._target[:3] + np.asarray(step) * POSE_STEP_M - site.xpos
        if (length := np.linalg.norm(lead)) > LEASH_M:
            lead *= LEASH_M / length
        self._target[:3] = np.clip(site.xpos + lead, self._low[:3], self._high[:3])
        return self._target

    def _jogged(self, step: NDArray, data: Any) -> NDArray:
        push = float(step[1])
        if self.mode not in ABSOLUTE:
            action = np.zeros(self.numbers)
            action[self.chosen] = push
            return action
        if self._target is None:
            self._target = np.zeros(self.numbers)
            count = min(self.numbers, len(data.ctrl))
            self._target[:count] = data.ctrl[:count]
        self._target[self.chosen] += push * JOINT_STEP
        self._target = np.clip(self._target, self._low.ravel(), self._high.ravel())
        return self._target

    def _fitted(self, action: NDArray) -> NDArray:
        """Leave out a gripper that the robot does not have, and stay within the bounds."""
        made = np.zeros(self.numbers)
        count = min(len(made), len(action))
        made[:count] = action[:count]
        typed = made.reshape(self._spec.shape).astype(self._spec.dtype)
        return np.clip(typed, self._low, self._high)
