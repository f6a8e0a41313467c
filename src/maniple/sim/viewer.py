"""Show one environment in MuJoCo's window."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import NoDisplay


def has_display() -> bool:
    """Tell whether a window can be opened."""
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


class Window:
    """MuJoCo's passive viewer over a model and data of its own."""

    def __init__(
        self,
        model: mujoco.MjModel,
        on_key: Callable[[int], Any] | None = None,
        instead: str = "Use render_mode='rgb_array' and render()",
    ) -> None:
        """Open the window.

        Args:
            model: Shown; the window keeps it.
            on_key: Called with the code of each key that is pressed.
            instead: What to do without a display, for the error message.
        """
        if not has_display():
            raise NoDisplay(
                f"There is no display for a window. {instead}, or log in with 'ssh -X'."
            )
        import mujoco.viewer

        self._model, self._data = model, mujoco.MjData(model)
        self._viewer: Any = mujoco.viewer.launch_passive(model, self._data, key_callback=on_key)

    @property
    def is_open(self) -> bool:
        """Whether the user has not closed it."""
        return self._viewer.is_running()

    def show(self, state: NDArray[np.float64]) -> NDArray[np.float64]:
        """Show a state, as `sim_state["integration"]` holds it.

        Returns:
            What the mouse pulls at, (bodies, 6): force (N) and torque (N.m) on each body, world.
        """
        kind = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        with self._viewer.lock():
            mujoco.mj_setState(self._model, self._data, np.asarray(state, np.float64), kind)
            self._data.xfrc_applied[:] = 0.0
            mujoco.mj_forward(self._model, self._data)
        self._viewer.sync()
        return self._data.xfrc_applied.copy()

    def close(self) -> None:
        """Close the window."""
        self._viewer.close()
