"""Joint-space control: servo targets, absolute or as steps."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec
from maniple.sim.control.control import servo_range


class RawJoint:
    """Actions in [-1, 1] are the servo targets themselves (rad)."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.action = ArraySpec((model.nu,), np.dtype(np.float64), -1.0, 1.0)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Pass the actions on."""
        return actions


class Joint:
    """Actions are servo targets within each servo's range (rad, m)."""

    def __init__(self, model: mujoco.MjModel) -> None:
        low, high = servo_range(model)
        # Rounded inwards, so that the float32 bound is never outside the servo's range.
        low32 = np.nextafter(low.astype(np.float32), np.float32(np.inf))
        high32 = np.nextafter(high.astype(np.float32), np.float32(-np.inf))
        self.action = ArraySpec((model.nu,), np.dtype(np.float32), low32, high32)

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Pass the actions on."""
        return actions


class DeltaJoint:
    """Actions in [-1, 1] move each servo target by up to `step` (rad, m)."""

    def __init__(self, model: mujoco.MjModel, step: float = 0.08) -> None:
        self.action = ArraySpec((model.nu,), np.dtype(np.float32), -1.0, 1.0)
        self._low, self._high = servo_range(model)
        self._step = step

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Add a step to the present targets, within the servos' range."""
        return np.clip(ctrl + actions * self._step, self._low, self._high)
