"""Demonstrations and datasets on the command line, as a user types them."""

import ctypes.util
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from maniple.cli.demos.dataset import rlbench_episode, write_dataset
from maniple.cli.demos.keyboard import NAMES, WindowClosed
from maniple.cli.demos.record import Options
from maniple.data.demos import Tally, load
from maniple.view.keys import HOLD_S, Keys


def maniple(*words, code=0):
    done = subprocess.run(
        [sys.executable, "-m", "maniple", *map(str, words)],
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == code, done.stderr + done.stdout
    return done


def last_json(printed):
    return json.loads(printed.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    out = tmp_path_factory.mktemp("demos") / "lift"
    words = "demos record --task so101/LiftCube-v0 --episodes 3 --num-envs 2 --cameras front wrist"
    done = maniple(*words.split(), "--image-size", 32, 48, "--out", out, "--json")
    return out, last_json(done.stdout)


def test_record(recorded):
    out, answer = recorded
    assert answer["recorded"] == answer["episodes"] == 3 and answer["frames"] > 60
    episodes = load(out)
    assert [e.seed for e in episodes] == [0, 1, 2] and all(e.success for e in episodes)
    assert {"front_rgb", "wrist_rgb", "cube_pose"} <= set(episodes[0].obs)


def test_info_and_check(recorded, inside):
    out, answer = recorded
    facts = last_json(inside("demos", "info", out, "--json").out)["datasets"][0]
    assert facts["episodes"] == 3 and facts["frames"] == answer["frames"]
    assert facts["features"]["observation.images.front"] == "video[32, 48, 3]"
    assert "Lift the red cube" in inside("demos", "info", out).out
    assert last_json(inside("data", "check", out, "--json").out)["ok"]


def test_append_check_repair_export(tmp_path, inside):
    out = tmp_path / "d"
    words = ("demos", "record", "--task", "so101/Reach-v0", "--num-envs", 2, "--out", out)
    inside(*words, "--episodes", 2, "--json")
    assert "--append" in inside(*words, code=2).err
    assert last_json(inside(*words, "--episodes", 2, "--append", "--json").out)["episodes"] == 4
    assert [e.seed for e in load(out)] == [0, 1, 2, 3]
    (out / "data/chunk-000/file-001.parquet").write_bytes(b"torn")
    found = inside("data", "check", out, code=1)
    assert "file-001.parquet: it cannot be read" in found.out and "data repair" in found.out
    assert last_json(inside("data", "repair", out, "--json").out)["episodes"] == 3
    inside("data", "check", out)
    npz = tmp_path / "npz"
    words = ("data", "export", out, "--out", npz, "--format", "npz", "--episodes", 0, 2, "--json")
    assert last_json(inside(*words).out)["episodes"] == 2
    with np.load(npz / "episode_000002.npz") as arrays:
        assert arrays["seed"] == 3 and len(arrays["obs.tip_pos"]) == len(arrays["action"]) + 1
    words = ("data", "export", out, "--out", tmp_path / "copy", "--json")
    assert last_json(inside(*words).out)["episodes"] == 3 == len(load(tmp_path / "copy"))


def test_panda_demonstrations_from_workers(tmp_path, inside):
    out = tmp_path / "panda"
    words = ("--task", "close_drawer", "--episodes", 3, "--num-envs", 2, "--engine", "process")
    assert last_json(inside("demos", "record", *words, "--out", out, "--json").out)["recorded"] == 3
    (out / "meta/tasks.parquet").write_bytes(b"torn")
    done = inside("demos", "info", out, code=2)
    assert "tasks.parquet cannot be read" in done.err and "data repair" in done.err
    assert last_json(inside("data", "repair", out, "--json").out)["episodes"] == 3
    inside("demos", "info", out)


def test_every_source_gives_the_same_answer(tmp_path, capsys):
    """Played by an expert or a person, or read: one function writes and counts."""

    def episodes(count):
        for _ in range(count):
            obs = {"joint_pos": np.zeros((3, 2), np.float32)}
            demo = {"obs": obs, "action": np.zeros((2, 2), np.float32), "sentence": "wave"}
            yield rlbench_episode(demo)
        raise WindowClosed("The window was closed.")

    options = Options(tmp_path / "a", task="wave", episodes=5)
    answer = write_dataset(options, 20, "panda", episodes(2), 5, tally=lambda: Tally(4, 3))
    assert answer.pop("seconds") >= 0
    assert answer == {
        "task": "wave", "out": str(tmp_path / "a"), "recorded": 2, "played": 4, "solved": 3,
        "episodes": 2, "frames": answer["frames"],
    }  # fmt: skip
    assert "2 episodes of wave" in capsys.readouterr().out
    first, _ = load(tmp_path / "a")
    assert first.reward.tolist() == [0, 1] and first.success and first.task == "wave"
    options = Options(tmp_path / "b", task="wave", json=True)
    answer = write_dataset(options, 20, "panda", episodes(1), 1)
    assert (answer["recorded"], answer["played"], answer["solved"]) == (1, 1, 1)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("demos", "record", "--out", "x", "--task", "so101/Lift"), "Did you mean so101/LiftCube"),
        (("demos", "record", "--out", "x", "--task", "LeRobot-v0"), "has no scripted expert"),
        (("demos", "record", "--out", "x", "--episodes", "0"), "--episodes is 0"),
        (("demos", "info", "nowhere"), "nothing at that place"),
        (("data", "check", "nowhere"), "is no dataset"),
        (("data", "repair", "nowhere"), "is no dataset"),
        (("data", "export", "nowhere", "--out", "x"), "nothing at that place"),
    ],
)
def test_mistakes_are_one_readable_line(words, says, tmp_path, monkeypatch, inside):
    monkeypatch.chdir(tmp_path)
    done = inside(*words, code=2)
    assert says in done.err
    assert "Traceback" not in done.err and len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_keyboard_without_a_display(tmp_path, monkeypatch, inside):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = inside("demos", "record", "--keyboard", "--out", tmp_path / "d", code=2)
    assert "ssh -X" in done.err and len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "d").exists()


def test_keys():
    keys = Keys(NAMES)
    assert keys.action(0.0).tolist() == [0, 0, 0, 1]
    keys.press(265, 1.0)
    keys.press(266, 1.1)
    keys.press(260, 1.1)
    assert keys.action(1.1).tolist() == [1, 0, 1, -1]
    assert keys.action(1.05 + HOLD_S).tolist() == [0, 0, 1, -1]
    assert keys.action(9.0).tolist() == [0, 0, 0, -1]


DRIVE = """
import ctypes, sys
from maniple.cli.demos.keyboard import Keyboard
from maniple.sim.xvfb import Xvfb
import os, maniple

x11, xtest = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
with Xvfb() as display:
    os.environ["DISPLAY"] = display.display
    x11.XOpenDisplay.restype = ctypes.c_void_p
    server = ctypes.c_void_p(x11.XOpenDisplay(display.display.encode()))
    x11.XKeysymToKeycode.argtypes = [ctypes.c_void_p, ctypes.c_ulong]
    envs = maniple.make_vec("so101/Reach-v0", 1, engine="native", control="ee")
    keyboard = Keyboard(envs)
    xtest.XTestFakeMotionEvent(server, -1, 600, 400, 0)
    obs, _ = envs.reset(seed=0)
    start = obs["tip_pos"][0].copy()
    code = x11.XKeysymToKeycode(server, 0xFF55)  # Page Up
    for _ in range(12):
        xtest.XTestFakeKeyEvent(server, code, 1, 0)
        xtest.XTestFakeKeyEvent(server, code, 0, 0)
        x11.XFlush(server)
        obs, *_ = envs.step(keyboard.act(obs))
    print("moved", *(obs["tip_pos"][0] - start))
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.alone
def test_a_key_moves_the_arm():
    """A key event in a virtual display, through MuJoCo's viewer, to the fingertip."""
    libraries = [ctypes.util.find_library(name) for name in ("X11", "Xtst")]
    if None in libraries or shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb and libXtst")
    done = subprocess.run(
        [sys.executable, "-c", DRIVE], capture_output=True, text=True, timeout=120
    )
    if "moved" not in done.stdout and "GLFW" in done.stderr:
        pytest.skip("the viewer has no OpenGL here")
    assert done.returncode == 0, done.stderr
    moved = list(map(float, done.stdout.split()[-3:]))
    assert moved[2] > 0.02 and abs(moved[0]) < 0.02 and abs(moved[1]) < 0.02


def test_without_pyarrow_the_extra_is_named(tmp_path):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from maniple.cli.main import main\n"
        f"sys.exit(main(['demos', 'record', '--out', {str(tmp_path / 'd')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and ".[data]" in done.stderr, done.stderr
