"""The part of the page with which a person drives and records one arm."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maniple.core.errors import ManipleError
from maniple.data.episode import Episode
from maniple.view.controls import Do, on, within
from maniple.view.keys import GRIP
from maniple.view.recording import Recording
from maniple.view.session import Session

KEYS = {"away": "I", "back": "K", "left": "J", "right": "L", "up": "U", "down": "O", GRIP: "H"}
"""The camera of the page has W A S D, Q E and the arrows; space clicks what was clicked last."""
HOLD_HZ = 25.0
REACHES = (0.05, 1.0)
HOW = (
    "**I K** away, back · **J L** left, right · **U O** up, down · **H** gripper. "
    "A tap is one small step; hold to go on. Any of them takes over; **G** gives back. "
    "If a key does nothing, click into the 3D view first."
)
HOW_NUMBERS = (
    "**J L** move the chosen number of the action. Any of them takes over; **G** gives back."
)

Opening = Callable[[Path], Recording]


class Pad:
    """Keys and buttons of the tab 'Drive'; one visitor at a time may use them."""

    def __init__(
        self, gui: Any, session: Session, do: Do, open_recording: Opening, folder: Path
    ) -> None:
        self._session, self._do, self._open = session, do, open_recording
        self._driver: int | None = None
        self.recording: Recording | None = None
        self.is_recording = False
        self.note = ""
        """Who drives, where that is to be said."""
        self.trouble = ""
        """Why nothing is recorded, where that was asked for."""
        person = session.person
        gui.add_markdown(HOW if person.moves_tip else HOW_NUMBERS)
        self.take = gui.add_button(
            "Take over", icon="hand-stop", color="orange", hint="G gives back"
        )
        self.chosen = None
        if not person.moves_tip:
            names = tuple(f"{k}" for k in range(person.numbers))
            self.chosen = gui.add_dropdown("Number that J and L move", names)
            on(self.chosen.on_update, do, self._choose)
        self.reach = gui.add_slider("Size of a step", *REACHES, 0.05, session.reach)
        on(self.reach.on_update, do, self._set_reach)
        self.buttons = {}
        with gui.add_folder("Pad (click, or hold)"):
            for name, key in KEYS.items():
                if not person.moves_tip and name not in ("left", "right"):
                    continue
                self._add_key(gui, name, key)
        with gui.add_folder("Dataset"):
            self.folder = gui.add_text("Folder", str(folder))
            # A button: while a checkbox has the focus, the browser keeps the keys for it.
            self.record = gui.add_button("Record episodes", icon="player-record", color="red")
            self.failures = gui.add_checkbox("Keep failures too", False)
            self.end = gui.add_button("End episode, keep it", icon="device-floppy")
            self.drop = gui.add_button("Discard episode", icon="trash")
            self.state = gui.add_markdown("Nothing is recorded.")
        on(self.record.on_click, do, self.toggle_record)
        on(self.end.on_click, do, self._keep_now)
        on(self.drop.on_click, do, lambda: session.end_episode(keep=False))
        self._on_taking(gui)
        session.on_episode = self._ended
        self._forced = False

    def _add_key(self, gui: Any, name: str, key: str) -> None:
        label = f"{'Gripper' if name == GRIP else name.capitalize()}  ({key})"
        button = self.buttons[name] = gui.add_button(label)
        command = gui.add_command(f"Drive: {name}", hotkey=key)

        async def pressed(event: Any) -> None:
            self.press(name, event.client_id)

        command.on_trigger(pressed)
        if name == GRIP:
            button.on_click(pressed)
        else:
            # A hold sends its first message at once: a click is a hold that was short.
            button.on_hold(pressed, callback_hz=HOLD_HZ)

    def _on_taking(self, gui: Any) -> None:
        async def toggled(event: Any) -> None:
            self._do(lambda: self._toggle(event.client_id))

        async def given_back(event: Any) -> None:
            self._do(lambda: self._leave(event.client_id))

        self.take.on_click(toggled)
        gui.add_command("Drive: give back", hotkey="G").on_trigger(given_back)

    def press(self, name: str, client: int | None) -> None:
        """A visitor presses a key: the first one who does so drives."""
        now_s = time.monotonic()
        self._do(lambda: self._press(name, client, now_s))

    def _press(self, name: str, client: int | None, now_s: float) -> None:
        session = self._session
        if session.is_driven and self._driver != client:
            self.note = "Somebody else is driving."
            return
        self._driver = client
        session.take_over()
        session.keys.press(name, now_s)
        self.show()

    def _toggle(self, client: int | None) -> None:
        if self._session.is_driven:
            self._leave(client)
        else:
            self._driver = client
            self._session.take_over()
            self.show()

    def _leave(self, client: int | None) -> None:
        if self._driver == client:
            self.left(client)

    def left(self, client: int | None) -> None:
        """A visitor has gone, or gives back: the policy goes on."""
        if self._session.is_driven and self._driver == client:
            self._session.give_back()
            self._driver = None
            self.show()

    def show(self) -> None:
        """Let the button and the lines say how things are."""
        if not self._session.is_driven:
            self.note = ""
        label = "Give back (G)" if self._session.is_driven else "Take over"
        if self.take.label != label:
            self.take.label = label
        label = "Stop recording" if self.is_recording else "Record episodes"
        if self.record.label != label:
            self.record.label = label
        text = self._told()
        if self.state.content != text:
            self.state.content = text

    def _told(self) -> str:
        recording = self.recording
        if recording is None:
            return self.trouble or self.note or "Nothing is recorded."
        if recording.trouble:
            return f"**Not recorded:** {recording.trouble}"
        waiting = f", {recording.waiting} being written" if recording.waiting else ""
        on_now = "Recording" if self.is_recording else "Stopped"
        kept = f"**{recording.kept}** episodes are safe in `{recording.folder}`"
        return f"{on_now}: {kept}{waiting}. {self.note}"

    def _choose(self) -> None:
        if self.chosen is not None:
            last = self._session.person.numbers - 1
            self._session.person.chosen = round(within(self.chosen.value, 0, last))

    def _set_reach(self) -> None:
        self._session.reach = within(self.reach.value, *REACHES)

    def toggle_record(self) -> None:
        """Begin to keep episodes, or stop."""
        if self.is_recording:
            self.is_recording = False
            self.show()
            return
        folder = Path(str(self.folder.value)).expanduser()
        try:
            if self.recording is None or self.recording.folder != folder or self.recording.trouble:
                self.close()
                self.recording = self._open(folder)
            self._session.begin_at(self.recording.first_seed)
            # An episode is recorded from its beginning.
            self._session.end_episode(keep=False)
            self.trouble, self.is_recording = "", True
        except (ManipleError, OSError) as error:
            self.trouble = f"**Not recorded:** {error}"
        self.show()

    def _keep_now(self) -> None:
        self._forced = True
        self._session.end_episode(keep=True)
        self._forced = False

    def _ended(self, episode: Episode) -> None:
        is_wanted = episode.success or bool(self.failures.value) or self._forced
        if self.recording is not None and self.is_recording and is_wanted:
            self.recording.add(episode)

    def close(self) -> None:
        """Finish writing."""
        if self.recording is not None:
            self.recording.close()
            self.recording = None
