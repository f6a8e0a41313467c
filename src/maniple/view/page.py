"""The page of a task that plays."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import ManipleError
from maniple.learn.player import Learned
from maniple.sim.render_source import DataSource
from maniple.view.arms import Arms
from maniple.view.controls import Controls, on, within
from maniple.view.pad import Pad
from maniple.view.pictures import Pictures, choices
from maniple.view.plots import LivePlot
from maniple.view.policies import CHECKPOINT
from maniple.view.recording import Recording
from maniple.view.run_panel import RunPanel
from maniple.view.runs import LOOK_S
from maniple.view.server import PageServer
from maniple.view.session import Session
from maniple.view.splats import Splats, look_from

PICTURE_SIZE = (192, 256)
FRAME_S, PICTURE_S, PLOT_S = 0.03, 0.15, 0.25
"""Shortest time between two frames, two sets of pictures, two drawings of the plots."""


class LivePage:
    """Shows a session to every visitor, and does what they ask on the caller's thread.

    Args:
        server: Where the page is served; the page closes it.
        session: What plays; the page closes it.
        runs: Folder whose runs can be followed.
        record_to: Folder that is proposed for recording.
        run: The run that the session came from.
    """

    def __init__(
        self,
        server: PageServer,
        session: Session,
        runs: Path = Path("runs"),
        record_to: Path = Path("demos"),
        run: Path | None = None,
        origin: dict[str, str] | None = None,
    ) -> None:
        self.server, self.session = server, session
        self._origin = origin or {}
        self._todo: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        gui = server.viser.gui
        prepare(server.viser, session.task)
        self.arms = Arms(server.viser.scene, session.model, session.rows)
        self.splats: Splats | None = None
        self.pictures = Pictures(session.model, PICTURE_SIZE)
        self._row_model = session.model
        self._images: dict[str, Any] = {}
        self._in_view: list[int] = []
        self._label: Any = None
        self._last = {"frame": 0.0, "pictures": 0.0, "plots": 0.0, "run": 0.0}
        self.state = gui.add_markdown("")
        tabs = gui.add_tab_group()
        with tabs.add_tab("Play"):
            self.controls = Controls(gui, session, self.do)
            self.plot = LivePlot(gui, "Reward terms of the env in focus")
            self._add_joints(gui)
        with tabs.add_tab("Drive"):
            self.pad = Pad(gui, session, self.do, self._open_recording, record_to)
        with tabs.add_tab("Run"):
            self.run_panel = RunPanel(gui, runs, self.do, run)
        self._add_cameras(gui)
        self._wire_visitors()
        self.show(force=True)

    @property
    def port(self) -> int:
        """Port of the page on this machine."""
        return self.server.port

    def do(self, action: Callable[[], None]) -> None:
        """Have something done on the thread that runs the page."""
        self._todo.put(action)

    def run(self, goes_on: Callable[[], bool]) -> int:
        """Play at the pace of the clock until told to stop; return how many frames were played."""
        due_s, frames = time.monotonic(), 0
        while goes_on():
            self._work(due_s)
            if time.monotonic() < due_s:
                continue
            frames += 1
            self.tick()
            due_s = max(due_s + 1.0 / (self.session.fps * self.session.speed), time.monotonic())
        return frames

    def tick(self) -> None:
        """Take one step unless paused, and show what has changed."""
        if not self.session.is_paused:
            self._guarded(self.session.step, is_step=True)
            if self.session.terms:
                self.plot.add(self.session.terms)
        self.show()

    def work(self) -> None:
        """Do everything that visitors have asked for so far."""
        while not self._todo.empty():
            self._guarded(self._todo.get())

    def _work(self, due_s: float) -> None:
        """Do what visitors ask for until the next step is due."""
        self.work()
        wait_s = min(due_s - time.monotonic(), 0.1)
        if wait_s > 0:
            try:
                action = self._todo.get(timeout=wait_s)
            except queue.Empty:
                return
            self._guarded(action)

    def _guarded(self, action: Callable[[], None], is_step: bool = False) -> None:
        """A mistake is told on the page: it does not end it for everybody."""
        try:
            action()
        except ManipleError as error:
            self._pause(str(error))
        except (ValueError, TypeError, KeyError, OverflowError, RuntimeError, OSError) as error:
            # A visitor's browser may send anything as the value of a slider, and a checkpoint may
            # hold other weights.
            if is_step:
                # The next step would fail as well.
                self._pause(f"{type(error).__name__}: {error}")
                return
            self._tell("Not done", f"{type(error).__name__}: {error}")

    def _pause(self, why: str) -> None:
        self.session.is_paused = True
        self.controls.show_pause()
        self._tell("Paused", why)

    def _tell(self, title: str, text: str) -> None:
        for client in self.server.viser.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=12.0, color="orange")

    def show(self, force: bool = False) -> None:
        """Send what is due: bodies, pictures, plots, lines of text."""
        session = self.session
        if session.has_own_looks and session.begun.any():
            models = session.envs.get_attr("model")
            self._row_model = models[session.focus]
            self.do(lambda: self.arms.paint(models))
        session.begun[:] = False
        if force or self._is_due("frame", FRAME_S):
            self.show_bodies()
        if force or self._is_due("pictures", PICTURE_S):
            self._show_pictures()
        if force or self._is_due("plots", PLOT_S):
            self.plot.show()
            self._show_state()
            self.pad.show()
        if self._is_due("run", LOOK_S):
            self.run_panel.show()

    def show_bodies(self) -> None:
        """Put all bodies where they are now."""
        session = self.session
        rows = list(range(session.rows)) if self.controls.shows_all else [session.focus]
        if rows != self._in_view:
            self._in_view = rows
            look_at(self.server.viser, *self.arms.around(rows))
        if self.splats is not None:
            rows = [row for row in rows if row != session.focus]
        with self.server.viser.atomic():
            self.arms.show_rows(rows)
            self.arms.move(session.states)
            if self.splats is not None:
                now = session.states[session.focus]
                self.splats.move(now["xpos"], now["xquat"], self.arms.offsets[session.focus])
            self._show_focus()

    def _show_focus(self) -> None:
        """Say beside an arm that it is the one in focus."""
        session = self.session
        is_shown = self.controls.shows_all
        text = f"env {session.focus}: you" if session.is_driven else f"env {session.focus}"
        if self._label is None or self._label.text != text:
            if self._label is not None:
                self._label.remove()
            place = self.arms.edge(session.focus)
            self._label = self.server.viser.scene.add_label("/focus", text, position=place)
        if self._label.visible != is_shown:
            self._label.visible = is_shown

    def _is_due(self, what: str, every_s: float) -> bool:
        now_s = time.monotonic()
        if now_s - self._last[what] < every_s:
            return False
        self._last[what] = now_s
        return True

    def _show_pictures(self) -> None:
        drawn = self.pictures.take()
        for name, picture in drawn.items():
            if name not in self._images:
                with self._camera_tab:
                    gui = self.server.viser.gui
                    self._images[name] = gui.add_image(picture, label=name, format="jpeg")
            else:
                self._images[name].image = picture
        text = self.pictures.trouble and f"Nothing is drawn: {self.pictures.trouble}"
        if self._camera_note.content != text:
            self._camera_note.content = text
        if self.server.viser.get_clients():
            state = self.session.states[self.session.focus]
            self.pictures.draw(self._row_model, state["integration"])

    def _show_state(self) -> None:
        session, totals = self.session, self.session.totals
        who = "**you**" if session.is_driven else session.acting
        actor = session.actors.get(session.acting)
        if isinstance(actor, Learned) and not session.is_driven:
            who = f"{CHECKPOINT} {actor.policy.checkpoint.path.name}"
        rate = f"{session.solved} of {session.episodes} solved" if session.episodes else ""
        seed = f"seed {session.seed}" if session.seed >= 0 else "moved by hand"
        place = f"env {session.focus} of {session.rows} · {seed} · step {totals.steps}"
        line = f"{place} · return {totals.reward:.2f}" + " · **solved**" * totals.is_solved
        more = " · ".join(part for part in (f"acting: {who}", rate) if part)
        text = f"**{session.task}**: {session.sentence}\n\n{line}\n\n{more}"
        if self.state.content != text:
            self.state.content = text

    def _add_cameras(self, gui: Any) -> None:
        panel = gui.add_panel()
        self._camera_tab = panel.add_tab("Cameras", "camera")
        with self._camera_tab:
            names = tuple(choices(self.session.model))
            now = self.pictures.renderer if self.pictures.renderer in names else names[0]
            self.pictures.renderer = now
            self.renderer = gui.add_dropdown("Drawn by", names, initial_value=now)
            self.splats_on = gui.add_checkbox("Splats in the 3D view", False)
            self.splats_on.visible = "splat" in names
            self._camera_note = gui.add_markdown("")
        panel.dock_left()
        panel.set_width(280)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(360)
        on(self.renderer.on_update, self.do, self._set_renderer)
        on(self.splats_on.on_update, self.do, self._set_splats)

    def _set_renderer(self) -> None:
        self.pictures.renderer = str(self.renderer.value)

    def _set_splats(self) -> None:
        if self.splats is not None:
            self.splats.remove()
            self.splats = None
        if self.splats_on.value:
            from maniple.splat.store import scene_for

            session, viser = self.session, self.server.viser
            data = session.whole_data()
            source = DataSource(session.model, data)
            self.splats = Splats(viser.scene, scene_for(source), source)
            # Splats look right from where their pictures were taken.
            offset, back = self.arms.offsets[session.focus], data.cam_xmat[0].reshape(3, 3)[:, 2]
            look_from(viser, data.cam_xpos[0] + offset, back, distance=-0.4)
        self.show_bodies()

    def _add_joints(self, gui: Any) -> None:
        """Sliders that move the joints of the env in focus while the page is paused."""
        self.joints = {}
        with gui.add_folder("Joints (while paused)", expand_by_default=False):
            for name, (low, high, now) in self.session.joints().items():
                start = float(np.clip(now, low, high))
                self.joints[name] = gui.add_slider(name, low, high, (high - low) / 200, start)
                on(self.joints[name].on_update, self.do, lambda name=name: self._set_joint(name))

    def _set_joint(self, name: str) -> None:
        if self.session.is_paused:
            low, high, _ = self.session.joints()[name]
            self.session.set_joint(name, within(self.joints[name].value, low, high))

    def _wire_visitors(self) -> None:
        viser = self.server.viser

        @viser.on_client_disconnect
        async def _(client: Any) -> None:
            self.do(lambda: self.pad.left(client.client_id))

    def _open_recording(self, folder: Path) -> Recording:
        from maniple.registry import find

        robot = getattr(getattr(find(self.session.task)(), "robot", None), "name", "")
        return Recording(folder, round(self.session.fps), robot, self._origin)

    def use_checkpoint(self, policy: Any) -> None:
        """Let a trained policy act; a newer one of the same run takes its place."""
        session = self.session
        session.actors[CHECKPOINT] = Learned(policy, session.envs)
        session.choose(CHECKPOINT)
        self.controls.show_policies()

    def latency_ms(self) -> dict[str, float]:
        """Say how long keys waited for the step that they moved."""
        waits = 1e3 * np.array(self.session.waits_s)
        if not len(waits):
            return {}
        low, high = np.percentile(waits, (50, 95))
        return {"keys": float(len(waits)), "p50": float(low), "p95": float(high)}

    def close(self) -> None:
        """Finish recordings, stop serving, let go of the environments."""
        self.pad.close()
        self.server.close()
        self.pictures.close()
        self.session.close()


def prepare(viser: Any, title: str) -> None:
    """Give the page its name, its light and its ground."""
    viser.gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(37, 99, 235))
    viser.gui.set_panel_label(f"maniple · {title}")
    scene = viser.scene
    scene.set_up_direction("+z")
    scene.world_axes.visible = False
    # The usual lights and reflections wash colours out.
    scene.configure_default_lights(False)
    scene.configure_environment_map(None)
    scene.add_light_ambient("/lights/sky", intensity=1.7)
    scene.add_light_directional("/lights/sun", intensity=1.6, position=(1.0, -1.5, 3.0))
    fade = np.linspace(0.0, 1.0, 64)[:, None, None]
    sky = (1 - fade) * np.array([196, 214, 232]) + fade * np.array([238, 241, 244])
    scene.set_background_image(np.repeat(sky, 8, axis=1).astype(np.uint8), format="png")


def look_at(viser: Any, middle: NDArray, distance_m: float) -> None:
    """Turn every visitor's camera, and that of those who come later, to a place."""
    position = middle + distance_m * np.array([0.72, -0.5, 0.6])
    for camera in (viser.initial_camera, *(c.camera for c in viser.get_clients().values())):
        camera.position, camera.look_at = tuple(position.tolist()), tuple(middle.tolist())
    viser.initial_camera.up = (0.0, 0.0, 1.0)
