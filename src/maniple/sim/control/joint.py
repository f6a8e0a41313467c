"""Joint-space control: the targets of all servos, absolute or as steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import ControlContext, StepControl, servo_range

STEP = 0.08


class RawJoint(StepControl):
    """Actions in [-1, 1] are the servo targets themselves (rad)."""

    def __init__(self, context: ControlContext) -> None:
        meaning = f"servo targets (rad or m): {_names(context)}"
        shape = (context.model.nu,)
        self.action = ArraySpec(shape, np.dtype(np.float64), -1.0, 1.0, meaning=meaning)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Pass the actions on."""
        return actions


class Joint(StepControl):
    """Actions are servo targets within each servo's range (rad, m)."""

    def __init__(self, context: ControlContext) -> None:
        low, high = servo_range(context.model)
        # Rounded inwards, so that the float32 bound is never outside the servo's range.
        low32 = np.nextafter(low.astype(np.float32), np.float32(np.inf))
        high32 = np.nextafter(high.astype(np.float32), np.float32(-np.inf))
        meaning = f"servo targets (rad or m): {_names(context)}"
        shape = (context.model.nu,)
        self.action = ArraySpec(shape, np.dtype(np.float32), low32, high32, meaning=meaning)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Pass the actions on."""
        return actions


class DeltaJoint(StepControl):
    """Actions in [-1, 1] move each servo target by up to STEP (rad, m)."""

    def __init__(self, context: ControlContext) -> None:
        meaning = f"steps of the servo targets (1 is {STEP} rad or m): {_names(context)}"
        shape = (context.model.nu,)
        self.action = ArraySpec(shape, np.dtype(np.float32), -1.0, 1.0, meaning=meaning)
        self._low, self._high = servo_range(context.model)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Add a step to the present targets, within the servos' range."""
        return np.clip(ctrl + actions * STEP, self._low, self._high)


def _names(context: ControlContext) -> str:
    return ", ".join(context.model.actuator(i).name for i in range(context.model.nu))
