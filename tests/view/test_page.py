"""The page's own objects: who may look, what clicks do, what is kept; without a browser."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.data.lerobot.read import Dataset
from maniple.registry import list_tasks
from maniple.run.log import read_lines
from maniple.view.keys import LONG_EPISODE
from maniple.view.subject import Subject, find_subject

viser = pytest.importorskip("viser")
pytestmark = pytest.mark.alone


@pytest.fixture
def opened(tmp_path):
    from maniple.view.live import open_live
    from maniple.view.server import PageServer

    made = []

    def open_page(task="so101/LiftCube-v0", rows=2, subject=None, acting=None):
        made.append(
            open_live(subject or Subject("task", task), rows, {}, 0, lambda: PageServer(port=0),
                      tmp_path / "runs", tmp_path / "recorded", acting)
        )  # fmt: skip
        return made[-1].page

    yield open_page
    for live in made:
        live.close()


def trigger(callbacks, client=1):
    for callback in callbacks:
        asyncio.run(callback(SimpleNamespace(client_id=client, client=None)))


def click(page, button, client=1):
    trigger(button._impl.update_cb, client)
    page.work()


def press(page, name, client=1):
    page.pad.press(name, client)
    page.work()


def test_buttons(opened):
    page = opened("so101/Reach-v0")
    session, controls = page.session, page.controls
    click(page, controls.pause)
    assert session.is_paused and controls.pause.label == "Go on"
    page.tick()
    assert session.totals.steps == 0
    click(page, controls.step)
    assert session.totals.steps == 1
    click(page, controls.reset)
    assert session.totals.steps == 0
    click(page, controls.pause)
    page.tick()
    assert session.totals.steps == 1


def test_sliders_and_choices(opened):
    page = opened("so101/Reach-v0", rows=3)
    page.controls.policy.value = "random"
    page.controls.focus.value = 2
    page.controls.rows.value = "one"
    page.renderer.value = "splat"
    deadline = time.monotonic() + 10
    while page.pictures.renderer != "splat" and time.monotonic() < deadline:
        page.work()
        time.sleep(0.02)
    session = page.session
    assert (session.acting, session.focus, page.controls.shows_all) == ("random", 2, False)
    page.show_bodies()
    assert len(page.arms._handles[0][1].batched_positions) == 1


@pytest.mark.parametrize("rubbish", [float("nan"), -1e9, 1e300, "x", None, [1], "\0"])
def test_rubbish_from_a_browser_does_not_end_the_page(opened, rubbish, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # The rubbish may name a folder.
    page = opened("so101/Reach-v0", rows=1)
    click(page, page.controls.pause)
    widgets = (page.controls.speed, page.controls.policy, page.controls.focus, page.pad.reach,
               page.controls.rows, page.pad.folder, *page.joints.values())  # fmt: skip
    for widget in widgets:
        widget._impl.value = rubbish
        trigger(widget._impl.update_cb)
    page.work()
    press(page, rubbish)
    click(page, page.pad.record)
    page.pad.is_recording = False
    for _ in range(3):
        click(page, page.controls.step)
    assert 0.1 <= page.session.speed <= 4 and np.isfinite(page.session.data.qpos).all()


def test_pictures_and_splats(opened):
    """Every renderer draws the env in focus; splats take its place in the scene."""
    page = opened("piper/Reach-v0")
    state = page.session.states[0]["integration"]
    for name in page.renderer.options:
        page.pictures.renderer = name
        page.pictures.draw(page.session.model, state)
        deadline = time.monotonic() + 30
        while not (drawn := page.pictures.take()):
            assert time.monotonic() < deadline and not page.pictures.trouble, page.pictures.trouble
            time.sleep(0.02)
        assert {p.shape for p in drawn.values()} == {(192, 256, 3)}
        assert all(p.std() > 5 for p in drawn.values())
    page.splats_on._impl.value = True
    page._set_splats()
    assert page.splats.gaussians > 10_000 and page.arms._shown == [1]
    page.splats_on._impl.value = False
    page._set_splats()
    assert page.splats is None and page.arms._shown == [0, 1]


def test_one_visitor_drives_at_a_time(opened):
    page = opened("so101/LiftCube-v0")
    session = page.session
    press(page, "up", client=1)
    assert session.is_driven
    press(page, "down", client=2)
    session.step()
    assert len(session.waits_s) == 1 and "else" in page.pad.note
    click(page, page.pad.take, client=2)
    assert session.is_driven, "only the one who drives gives back"
    page.pad.left(1)
    assert not session.is_driven
    press(page, "up", client=2)
    assert session.is_driven


def test_what_is_recorded_is_safe_and_plays_again(opened, tmp_path):
    from maniple.view.dataset_page import DatasetPage
    from maniple.view.server import PageServer

    page = opened("so101/Reach-v0")
    click(page, page.pad.record)
    assert page.pad.is_recording
    while page.pad.recording.kept < 2:
        page.tick()
    press(page, "up")
    page.tick()
    click(page, page.pad.end)
    page.pad.close()
    dataset = list(Dataset(tmp_path / "recorded"))
    (cut,) = [k for k, episode in enumerate(dataset) if episode.truncated]
    assert dataset[cut].intervention.tolist()[-1] and cut >= 2
    assert all(episode.success for episode in dataset[:cut])
    assert find_subject(str(tmp_path / "recorded")).task == "so101/Reach-v0"
    shown = DatasetPage(lambda: PageServer(port=0), tmp_path / "recorded", "so101/Reach-v0")
    try:
        assert "played again, it is the same" in shown.state.content
        shown.episode.value = cut
        shown.work()
        shown.open_episode()
        assert "1 steps by a person" in shown.state.content
        for _ in range(4):
            shown.tick()
        assert shown.time.value > 0
    finally:
        shown.close()


def test_a_dataset_that_grows(tmp_path, inside):
    from maniple.data.lerobot.write import DatasetWriter
    from maniple.view.dataset_page import DatasetPage
    from maniple.view.server import PageServer

    inside("demos", "record", "--out", tmp_path / "d", "--task", "so101/Reach-v0", "--episodes", 2)
    page = DatasetPage(lambda: PageServer(port=0), tmp_path / "d", "")
    try:
        assert "2 episodes" in page.state.content and "--task" in page.note
        assert find_subject(str(tmp_path / "d")).task == "so101/Reach-v0"
        episode = Dataset(tmp_path / "d")[0]
        with DatasetWriter(tmp_path / "d", 25) as writer:
            writer.add(episode)
            page._look()
        assert "3 episodes" in page.state.content
    finally:
        page.close()


def test_subjects(tmp_path):
    assert find_subject("LiftCube").kind == "task"
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for rubbish in ("nosuchtask", str(tmp_path / "file"), str(tmp_path / "empty"), "", "../..//x"):
        with pytest.raises(BadConfig):
            find_subject(rubbish)


def test_bad_words(inside, tmp_path):
    for words in (
        ["nosuchtask"],
        ["--num-envs", "0"],
        ["--policy", "nobody"],
        ["--policy", "checkpoint"],
        ["--port", "99999"],
        [str(tmp_path)],
        ["--host", "203.0.113.7"],
        ["--control", "psychic"],
    ):
        done = inside("view", *words, "--seconds", "0.1", code=2)
        assert "Traceback" not in done.err and len(done.err.strip().splitlines()) == 1, done.err


def serve(*words, **more):
    """Start the command, and wait until it has said where the page is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "maniple", "view", "--port", "0", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
    )  # fmt: skip
    line = process.stdout.readline()
    assert line.startswith("http://127.0.0.1:"), line + process.stderr.read()
    return process, line.split()[0]


def test_ctrl_c_ends_it_cleanly():
    process, _ = serve("so101/Reach-v0")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.strip() == "maniple: stopped." and "Trace" not in out


KILLED = """
import os, sys
from pathlib import Path
from maniple.view.live import open_live
from maniple.view.server import PageServer
from maniple.view.subject import Subject

live = open_live(Subject("task", "so101/Reach-v0"), 1, {}, 0, lambda: PageServer(port=0),
                 Path("runs"), Path(sys.argv[1]))
page = live.page
page.pad.toggle_record()
while page.pad.recording.kept < int(sys.argv[2]):
    page.tick()
print(page.pad.recording.kept, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path, inside):
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "d", "3"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=120)  # fmt: skip
    assert done.returncode == -9, done.stderr
    told = int(done.stdout.split()[-1])
    inside("data", "repair", tmp_path / "d")
    kept = Dataset(tmp_path / "d")
    assert len(kept) >= told and all(episode.success for episode in kept)


def test_sixteen_arms_are_few_messages(opened):
    """All poses of a body go out together: as many updates as there are parts, not arms."""
    page = opened("so101/LiftCube-v0", rows=16)
    page.session.step()
    page.show_bodies()
    handles = page.arms._handles
    assert len(handles) < 25
    states = page.session.states
    part, handle = handles[-1]
    wanted = np.stack([s["xpos"][part.body] for s in states]) + page.arms.offsets
    assert np.allclose(handle.batched_positions, wanted, atol=1e-5)
    assert page.session.limit < LONG_EPISODE


@pytest.mark.slow
@pytest.mark.parametrize("task", list_tasks())
def test_every_task_has_a_page(opened, task):
    """It plays, is drawn, and a person can take over."""
    page = opened(task)
    page.tick()
    press(page, "left")
    page.tick()
    assert page.session.is_driven and len(page.arms._handles) > 3
    assert page.session.envs.action_space.contains(
        np.stack([page.session._last_action] * page.session.rows)
    )


@pytest.mark.slow
def test_a_run_is_followed_while_it_trains(tmp_path, inside):
    """Without a checkpoint somebody else acts; when one appears, it does."""
    from maniple.view.live import open_live
    from maniple.view.server import PageServer

    words = [
        "train",
        "sac",
        "--task",
        "so101/Reach-v0",
        "--num-envs",
        4,
        "--run-dir",
        tmp_path / "r",
        "--eval-n-trajs",
        0,
        "--demos",
        0,
        "--training-starts",
        100,
        "--random-steps",
        100,
        "--log-period",
        100,
        "--demos-from",
        tmp_path / "d",
    ]
    inside(*words, "--max-steps", 400)
    subject = find_subject(str(tmp_path))
    assert (subject.kind, subject.path) == ("run", tmp_path / "r")
    hidden = (tmp_path / "r/checkpoints").rename(tmp_path / "hidden")
    live = open_live(subject, 2, {}, 0, lambda: PageServer(port=0), tmp_path, tmp_path / "d")
    page = live.page
    try:
        assert "no whole checkpoint" in live.note and page.session.acting != "checkpoint"
        assert "400" in page.run_panel.state.content
        hidden.rename(tmp_path / "r/checkpoints")
        deadline = time.monotonic() + 60
        while page.session.acting != "checkpoint":
            assert time.monotonic() < deadline
            page.work()
            page.tick()
        first = page.session.actors["checkpoint"].name
        inside(*words[:2], "--resume", "--run-dir", tmp_path / "r", "--max-steps", 800)
        while page.session.actors["checkpoint"].name == first:
            assert time.monotonic() < deadline + 60
            page.work()
            page.tick()
    finally:
        live.close()
    assert json.loads((tmp_path / "r/metrics.jsonl").read_text().splitlines()[-1])["step"] >= 800


@pytest.mark.slow
def test_a_learner_takes_in_what_the_page_records(opened, tmp_path):
    """Both run at once; the learner tells how many episodes it has learned from."""
    words = ["train", "sac", "--task", "so101/Reach-v0", "--num-envs", "4", "--demos", "0",
             "--eval-n-trajs", "0", "--max-steps", "1000000", "--training-starts", "100",
             "--log-period", "100", "--run-dir", tmp_path / "r", "--demos-from",
             tmp_path / "recorded"]  # fmt: skip
    learner = subprocess.Popen([sys.executable, "-m", "maniple", *map(str, words)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def learned():
        file = tmp_path / "r/metrics.jsonl"
        lines = read_lines(file) if file.exists() else []
        return lines[-1].get("demos/episodes", -1) if lines else -1

    def until_learned(count):
        deadline = time.monotonic() + 90
        while learned() < count:
            assert time.monotonic() < deadline and learner.poll() is None
            time.sleep(0.2)

    try:
        until_learned(0)
        page = opened("so101/Reach-v0", rows=1)
        click(page, page.pad.record)
        for count in (1, 3):
            while page.pad.recording.kept < count:
                press(page, "up")
                page.tick()
                page.pad.left(1)
                page.tick()
            until_learned(count)
    finally:
        learner.send_signal(signal.SIGINT)
        learner.wait(60)


def test_a_policy_that_breaks_pauses_the_page(opened):
    """The page lives on: another one can act."""

    class Broken:
        def act(self, obs):
            raise RuntimeError("the weights do not fit")

        def reset(self, rows):
            pass

    page = opened("so101/Reach-v0")
    page.session.actors["broken"] = Broken()
    page.session.choose("broken")
    page.tick()
    assert page.session.is_paused and page.controls.pause.label == "Go on"
    page.session.choose("random")
    click(page, page.controls.pause)
    page.tick()
    assert not page.session.is_paused and page.session.totals.steps == 1
