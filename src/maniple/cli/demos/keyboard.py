"""Drive one arm from the keyboard, in MuJoCo's viewer."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ManipleError

LONG_EPISODE = 1500
"""Steps after which an episode of a person is truncated: a minute at 25 per second."""

HELP = """\
Arrows move the fingertip away, back, left and right; Page Up and Page Down lift and lower it;
Insert opens and shuts the gripper. An episode ends when the task is solved.
Close the window to stop."""

HOLD_S = 0.2
"""How long a key acts: a little longer than the pause between the repeats of a held key."""

# GLFW's key codes, as the viewer reports them.
INSERT = 260
MOVES = {
    265: (1.0, 0.0, 0.0),  # up
    264: (-1.0, 0.0, 0.0),  # down
    263: (0.0, 1.0, 0.0),  # left
    262: (0.0, -1.0, 0.0),  # right
    266: (0.0, 0.0, 1.0),  # page up
    267: (0.0, 0.0, -1.0),  # page down
}


class WindowClosed(ManipleError):
    """The person has closed the window."""


class Keys:
    """What the keys ask for at a moment."""

    def __init__(self) -> None:
        self._pressed_s: dict[int, float] = {}
        self.is_open = True

    def press(self, key: int, now_s: float) -> None:
        """Remember that a key was pressed."""
        if key == INSERT:
            self.is_open = not self.is_open
        elif key in MOVES:
            self._pressed_s[key] = now_s

    def action(self, now_s: float) -> NDArray[np.float32]:
        """Return the fingertip's step and the gripper, each from -1 to 1."""
        step = np.zeros(3)
        for key, pressed_s in list(self._pressed_s.items()):
            if now_s - pressed_s < HOLD_S:
                step += MOVES[key]
        return np.array([*np.clip(step, -1.0, 1.0), 1.0 if self.is_open else -1.0], np.float32)


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
        self._keys = Keys()
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
