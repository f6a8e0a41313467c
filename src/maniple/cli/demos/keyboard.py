"""Drive one arm from the keyboard, in MuJoCo's viewer."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ManipleError
from maniple.view.keys import GRIP, Keys

HELP = """\
Arrows move the fingertip away, back, left and right; Page Up and Page Down lift and lower it;
Insert opens and shuts the gripper. An episode ends when the task is solved.
Close the window to stop."""

# GLFW's key codes, as the viewer reports them: arrows, page up, page down, insert.
NAMES = {265: "away", 264: "back", 263: "left", 262: "right", 266: "up", 267: "down", 260: GRIP}


class WindowClosed(ManipleError):
    """The person has closed the window."""


class Keyboard:
    """Acts in the only row, at the pace of the clock."""

    def __init__(self, envs: Any) -> None:
        if envs.single_action_space.shape != (4,):
            raise BadConfig(
                "--keyboard moves a fingertip: it needs 4 numbers per action, and this task takes "
                f"{envs.single_action_space.shape}. Choose one of the so101 tasks."
            )
        from maniple.sim.viewer import Window

        self._envs = envs
        self._keys = Keys(NAMES)
        self._window = Window(
            envs.get_attr("model")[0],
            on_key=lambda key: self._keys.press(key, time.monotonic()),
            instead="Leave --keyboard out to record the scripted expert",
        )
        self._period_s = 1.0 / envs.metadata["render_fps"]
        self._due_s = time.monotonic()

    def act(self, obs: Any) -> NDArray[np.float32]:
        """Show the arm, wait for its next step, and return what the keys ask for."""
        if not self._window.is_open:
            raise WindowClosed("The window was closed.")
        self._window.show(self._envs.get_attr("sim_state")[0]["integration"])
        self._due_s = max(self._due_s + self._period_s, time.monotonic())
        time.sleep(max(0.0, self._due_s - time.monotonic()))
        return self._keys.action(time.monotonic())[None]

    def reset(self, rows: Any) -> None:
        """Begin with an open gripper."""
        self._keys.is_open = True

    def close(self) -> None:
        """Close the window."""
        self._window.close()
