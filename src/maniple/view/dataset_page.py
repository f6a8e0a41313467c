"""The page of a dataset: its episodes on a timeline."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from maniple.core.errors import ManipleError
from maniple.data.episode import Episode
from maniple.data.lerobot.meta import read_origin
from maniple.data.lerobot.read import Dataset
from maniple.view.arms import Arms
from maniple.view.controls import on, within
from maniple.view.page import PICTURE_SIZE, look_at, prepare
from maniple.view.pictures import Pictures
from maniple.view.plots import AXES, PADDING, series_of
from maniple.view.replay import Replay
from maniple.view.server import PageServer

SMALLEST_WIDTH = 200
"""Pixels of a recorded picture on the page; smaller ones are shown in larger pixels."""
LOOK_S = 2.0
"""Seconds between two looks at a dataset that may be growing."""


class DatasetPage:
    """Episodes one by one, each with a slider over its steps.

    The arm is shown where the task is known: the episode is played again from its seed.
    """

    def __init__(self, open_server: Callable[[], PageServer], path: Path, task: str = "") -> None:
        self.path, self.task = path, task
        self._dataset = Dataset(path)
        self._replay: Replay | None = None
        self.note = ""
        if task:
            try:
                self._replay = Replay(task, read_origin(path).get("control"))
            except ManipleError as error:
                self.note = f"The arm is not shown: {error}"
        else:
            self.note = "The dataset does not say its task; add --task to see the arm move."
        try:
            self.server = open_server()
        except BaseException:
            self._let_go()
            raise
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._looked_s = time.monotonic()
        self.is_playing = True
        self._at = 0
        self._episode: Episode | None = None
        self._states: list[dict[str, Any]] = []
        self._arms: Arms | None = None
        self._pictures: Pictures | None = None
        if self._replay is not None:
            self._arms = Arms(self.server.viser.scene, self._replay.model, 1)
            self._arms.show_rows([0])
            if not self._dataset.features.films:
                self._pictures = Pictures(self._replay.model, PICTURE_SIZE)
        self._add_widgets()
        if self._arms is not None:
            look_at(self.server.viser, *self._arms.around([0]))
        self.open_episode()

    @property
    def port(self) -> int:
        """Port of the page on this machine."""
        return self.server.port

    def _add_widgets(self) -> None:
        viser = self.server.viser
        prepare(viser, self.path.name)
        gui = viser.gui
        self.state = gui.add_markdown("")
        count = len(self._dataset)
        self.episode = gui.add_slider("Episode", 0, max(1, count - 1), 1, 0)
        self.time = gui.add_slider("Step", 0, 1, 1, 0)
        self.play = gui.add_button("Pause", icon="player-pause", hint="Hotkey: P")
        self._plot_folder = gui.add_folder("Reward, and the steps that a person chose")
        self._plot: Any = None
        self._action_folder = gui.add_folder("Actions")
        self._action_plot: Any = None
        panel = gui.add_panel()
        self._camera_tab = panel.add_tab("Cameras", "camera")
        self._images: dict[str, Any] = {}
        panel.dock_left()
        panel.set_width(280)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(360)
        on(self.episode.on_update, self.do, self.open_episode)
        on(self.time.on_update, self.do, self._scrub)
        on(self.play.on_click, self.do, self._toggle)
        on(gui.add_command("Pause", hotkey="P").on_trigger, self.do, self._toggle)

    def do(self, action: Callable[[], None]) -> None:
        """Have something done on the thread that runs the page."""
        self._todo.put(action)

    def run(self, goes_on: Callable[[], bool]) -> int:
        """Play at the recorded pace until told to stop; return how many frames were shown."""
        frames, period_s = 0, 1.0 / max(1.0, float(self._dataset.info["fps"]))
        due_s = time.monotonic()
        while goes_on():
            self.work()
            time.sleep(max(0.0, min(due_s - time.monotonic(), period_s)))
            if time.monotonic() >= due_s:
                due_s = max(due_s + period_s, time.monotonic())
                frames += 1
                self.tick()
        return frames

    def work(self) -> None:
        """Do everything that visitors have asked for so far."""
        while not self._todo.empty():
            try:
                self._todo.get()()
            except (ManipleError, OSError, ValueError, TypeError, OverflowError) as error:
                self.state.content = f"**{self.path}**\n\nThis cannot be read: {error}"

    def tick(self) -> None:
        """Go on by one step, and look now and then whether there are more episodes."""
        if self._pictures is not None:
            self._show_images(self._pictures.take())
        if self.is_playing and self._episode is not None:
            self.show(self._at + 1)
            if self._at == len(self._episode):
                self._toggle()
        if time.monotonic() - self._looked_s > LOOK_S:
            self._looked_s = time.monotonic()
            self._look()

    def open_episode(self) -> None:
        """Read the episode that the slider is at, and play it from its beginning."""
        if not len(self._dataset):
            self.state.content = f"**{self.path}** has no episodes yet."
            return
        number = round(within(self.episode.value, 0, len(self._dataset) - 1))
        episode = self._dataset[number]
        self._states, said = [], self.note
        if self._replay is not None and self._arms is not None:
            self._states, self._model, said = self._replay.play(episode)
            self._arms.paint([self._model])
        self._episode = episode
        marks = episode.intervention
        by_hand = f" · {int(marks.sum())} steps by a person" if marks is not None else ""
        end = "solved" if episode.success else "not solved"
        self.state.content = (
            f"**{self.path}**: {len(self._dataset)} episodes\n\n{episode.task}\n\n"
            f"episode {number} · {len(episode)} steps · seed {episode.seed} · {end}{by_hand}\n\n"
            f"{said}"
        )
        self.time.max = len(episode)
        self._draw_plots(episode)
        self.show(0)
        self.is_playing = True
        self._show_button()

    def show(self, at: int) -> None:
        """Show one moment of the episode."""
        episode = self._episode
        assert episode is not None
        self._at = int(np.clip(at, 0, len(episode)))
        if self.time.value != self._at:
            self.time.value = self._at
        films = {n: a for n, a in episode.obs.items() if n in self._dataset.features.films}
        self._show_images({name: frames[self._at] for name, frames in films.items()})
        if self._states and self._arms is not None:
            with self.server.viser.atomic():
                self._arms.move([self._states[self._at]])
            if self._pictures is not None:
                self._pictures.draw(self._model, self._states[self._at]["integration"])

    def _scrub(self) -> None:
        # Also called when the page itself has moved the slider.
        if self._episode is not None and int(self.time.value) != self._at:
            self.is_playing = False
            self._show_button()
            self.show(int(self.time.value))

    def _toggle(self) -> None:
        self.is_playing = not self.is_playing
        if self.is_playing and self._episode is not None and self._at >= len(self._episode):
            self.show(0)
        self._show_button()

    def _show_button(self) -> None:
        self.play.label = "Pause" if self.is_playing else "Play"
        self.play.icon = "player-pause" if self.is_playing else "player-play"

    def _look(self) -> None:
        """Take in episodes that were written since: a writer's dataset is whole at any moment."""
        try:
            found = Dataset(self.path)
        except (ManipleError, OSError):
            return  # Between two files of one change: the next look tells.
        was_empty, grown = not len(self._dataset), len(found) > len(self._dataset)
        if grown:
            self._dataset = found
            self.episode.max = max(1, len(found) - 1)
            if was_empty:
                self.open_episode()
            else:
                first, _, rest = self.state.content.partition("\n")
                head = first.partition(":")[0]
                self.state.content = f"{head}: {len(found)} episodes\n{rest}"

    def _draw_plots(self, episode: Episode) -> None:
        steps = np.arange(len(episode), dtype=np.float64)
        numbers = {"reward": episode.reward.astype(np.float64)}
        if episode.intervention is not None:
            numbers["person"] = episode.intervention.astype(np.float64)
        self._plot = self._redraw(self._plot, self._plot_folder, steps, numbers)
        flat = episode.action.reshape(len(episode), -1).astype(np.float64)
        actions = {f"action {k}": flat[:, k].copy() for k in range(min(flat.shape[1], 8))}
        self._action_plot = self._redraw(self._action_plot, self._action_folder, steps, actions)

    def _redraw(self, old: Any, folder: Any, x: Any, numbers: dict[str, Any]) -> Any:
        if old is not None:
            old.remove()
        with folder:
            return self.server.viser.gui.add_uplot(
                (x, *numbers.values()), series_of("step", tuple(numbers)), height=190,
                scales={"x": {"time": False, "auto": True}, "y": {"auto": True}},
                axes=AXES, padding=PADDING, legend={"show": True, "live": False},
            )  # fmt: skip

    def _show_images(self, pictures: dict[str, Any]) -> None:
        for name, picture in pictures.items():
            times = max(1, -(-SMALLEST_WIDTH // picture.shape[1]))
            shown = picture.repeat(times, 0).repeat(times, 1)
            if name in self._images:
                self._images[name].image = shown
                continue
            with self._camera_tab:
                label, gui = name.removesuffix("_rgb"), self.server.viser.gui
                self._images[name] = gui.add_image(shown, label=label, format="jpeg")

    def _let_go(self) -> None:
        if self._replay is not None:
            self._replay.close()

    def close(self) -> None:
        """Stop serving, and let go of the environment."""
        self.server.close()
        if self._pictures is not None:
            self._pictures.close()
        self._let_go()
