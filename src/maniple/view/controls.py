"""The part of the page with which people play: pause, step, reset, who acts, how fast."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from maniple.view.policies import CHECKPOINT
from maniple.view.session import Session

Do = Callable[[Callable[[], None]], None]
ALL, ONE = "all", "one"
SPEEDS = (0.1, 4.0)


class Controls:
    """Buttons and sliders of the tab 'Play'; what they change happens on the session's thread."""

    def __init__(self, gui: Any, session: Session, do: Do) -> None:
        self._session, self._do = session, do
        self.pause = gui.add_button("Pause", icon="player-pause", hint="Hotkey: P")
        self.step = gui.add_button("Step", icon="player-track-next", hint="One step. Hotkey: N")
        self.reset = gui.add_button("Reset", icon="refresh", hint="New episodes. Hotkey: R")
        self.policy = gui.add_dropdown("Who acts", self._names(), initial_value=session.acting)
        self.speed = gui.add_slider("Speed", *SPEEDS, 0.1, 1.0, hint="1 is real time")
        self.rows = gui.add_dropdown("Show", (ALL, ONE), initial_value=ALL)
        self.focus = gui.add_slider("Env in focus", 0, max(1, session.rows - 1), 1, 0)
        self.rows.visible = self.focus.visible = session.rows > 1
        self.shows_all = session.rows > 1
        self._wire(gui)

    def _wire(self, gui: Any) -> None:
        do, session = self._do, self._session
        clicks = (
            (self.pause, "P", self.toggle_pause),
            (self.step, "N", self.one_step),
            (self.reset, "R", lambda: session.reset()),
        )
        for button, key, action in clicks:
            on(button.on_click, do, action)
            on(gui.add_command(str(button.label), hotkey=key).on_trigger, do, action)
        on(self.policy.on_update, do, lambda: session.choose(str(self.policy.value)))
        on(self.speed.on_update, do, self._set_speed)
        on(self.focus.on_update, do, lambda: session.look_at(int(self.focus.value)))
        on(self.rows.on_update, do, self._set_rows)

    def toggle_pause(self) -> None:
        """Pause, or go on."""
        self._session.is_paused = not self._session.is_paused
        self.show_pause()

    def one_step(self) -> None:
        """Take one step, and pause."""
        self._session.is_paused = True
        self._session.step()
        self.show_pause()

    def show_pause(self) -> None:
        """Let the button say what it does next."""
        is_paused = self._session.is_paused
        self.pause.label = "Go on" if is_paused else "Pause"
        self.pause.icon = "player-play" if is_paused else "player-pause"

    def show_policies(self) -> None:
        """Offer whoever can act now."""
        self.policy.options = self._names()
        if self.policy.value != self._session.acting:
            self.policy.value = self._session.acting

    def _names(self) -> tuple[str, ...]:
        names = tuple(self._session.actors)
        # The trained policy first: it is what a run was opened for.
        return tuple(sorted(names, key=lambda name: name != CHECKPOINT))

    def _set_speed(self) -> None:
        self._session.speed = within(self.speed.value, *SPEEDS)

    def _set_rows(self) -> None:
        self.shows_all = self.rows.value == ALL and self._session.rows > 1


def within(value: Any, low: float, high: float) -> float:
    """Return a slider's number, whatever a browser has sent."""
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"{number} is no number that can be set")
    return min(max(number, low), high)


def on(register: Callable[[Any], Any], do: Do, action: Callable[[], None]) -> None:
    """Have an action done on the session's thread whenever something is clicked or changed."""

    # On the server's event loop, not in its pool of threads: in the order of the clicks.
    async def called(event: Any) -> None:
        do(action)

    register(called)
