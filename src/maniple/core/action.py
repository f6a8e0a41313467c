"""Check a batch of actions before any simulator sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maniple.core.errors import BadAction
from maniple.core.group import Contract
from maniple.core.quick import all_true, all_within


class ActionCheck:
    """Lets through actions of the right shape, type and range; clips where asked to."""

    def __init__(self, contract: Contract) -> None:
        self._spec = contract.action["action"]
        self._shape = self._spec.shape
        self._kinds = "fiub" if self._spec.dtype.kind == "b" else "fiu"
        self._clips = contract.clip_actions
        low, high = self._spec.bounds()
        self._low, self._high = low.copy(), high.copy()
        # Most bounds are -1 and 1: one comparison instead of two.
        top = float(high.flat[0]) if high.size else 0.0
        self._radius = top if (high == top).all() and (low == -top).all() else None

    def __call__(self, actions: ArrayLike, lead: tuple[int, ...]) -> NDArray:
        """Return the actions as an array that is safe to apply.

        Args:
            actions: What the user gave.
            lead: The axes before one action's own: (rows,) or (rows, chunk).

        Raises:
            BadAction: Wrong shape or type, not a number, or out of range (unless it is clipped).
        """
        array = np.asarray(actions)
        if array.shape != lead + self._shape:
            raise BadAction(
                f"The actions have shape {array.shape}; they must have {lead + self._shape}."
            )
        if array.dtype.kind not in self._kinds:
            raise BadAction(
                f"The actions have dtype {array.dtype}; they must be {self._spec.dtype}."
            )
        if self._radius is not None and all_within(array, self._radius):
            return array
        # NaN fails every comparison, so that one test finds it too.
        inside = (array >= self._low) & (array <= self._high)
        if all_true(inside):
            return array
        if self._clips and np.isfinite(array).all():
            return np.clip(array, self._low, self._high)
        raise BadAction(self._complaint(array, inside, lead))

    def _complaint(self, array: NDArray, inside: NDArray, lead: tuple[int, ...]) -> str:
        at = tuple(int(i) for i in np.argwhere(~inside)[0])
        inner = at[len(lead) :]
        row = f"row {at[0]}" + (f", chunk step {at[1]}" if len(lead) == 2 else "")
        where = f"The action of {row}, number {inner[0] if inner else 0},"
        if not np.isfinite(array[at]):
            return f"{where} is {array[at]}. Look for NaN in the policy's output."
        return (
            f"{where} is {array[at]:.6g}, outside "
            f"[{self._low[inner]:.6g}, {self._high[inner]:.6g}]. "
            "Clip it, or make the environment with clip_actions=True."
        )
