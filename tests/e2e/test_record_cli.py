"""maniple record and maniple replay, as people type them."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from conftest import listed
from without_torch import maniple_without_torch

from maniple.data.h264 import Encoder
from maniple.data.lerobot.meta import read_origin
from maniple.data.lerobot.read import Dataset
from maniple.data.trajectory import numbers_in, read_trajectory, states_in
from maniple.registry import EXPERTS, TASKS

REACH = "so101/Reach-v0"


def answer(printed):
    return json.loads(printed.out.strip().splitlines()[-1])


@pytest.fixture
def recording(inside, tmp_path):
    words = ["--episodes", 3, "--image-size", 32, 48, "--cameras", "front", "--out", tmp_path / "r"]
    printed = inside("record", REACH, *words)
    assert printed.out.startswith("episode 0: seed 0")
    return tmp_path / "r"


@pytest.mark.parametrize("task", listed(TASKS))
def test_states_follow_from_their_actions(inside, tmp_path, task):
    """Every task: the same bits follow when the actions are taken again from the first state."""
    who = "expert" if task in EXPERTS else "random"
    out = tmp_path / "r"
    inside(
        "record", task, "--policy", who, "--episodes", 2, "--num-envs", 2, "--format", "states",
        "--max-episode-steps", 120, "--out", out,
    )  # fmt: skip
    found = answer(inside("replay", out, "--no-film", "--json"))
    assert found["is_exact"] and found["episodes"] == [0, 1]


def test_perturbed_episodes_follow_too(inside, tmp_path):
    words = ["--format", "states", "--episodes", 2, "--perturb", "all", "--out", tmp_path / "r"]
    inside("record", REACH, *words, "--max-episode-steps", 30)
    assert answer(inside("replay", tmp_path / "r", "--no-film", "--json"))["is_exact"]


@pytest.fixture
def filmed(monkeypatch):
    """What is given to encoders: x264 does not make the same bytes of it in every process."""
    frames, add = [], Encoder.add
    monkeypatch.setattr(Encoder, "add", lambda self, f: (frames.append(f.copy()), add(self, f)))
    return frames


def test_pictures_are_the_recorded_ones_or_others(inside, filmed, recording):
    """With the recorded settings the same pictures come out; cameras, size and grid are free."""
    new, recorded = recording.parent / "again", filmed.copy()
    inside("replay", recording, "--no-film", "--quality", "lean", "--dataset", new)
    again = filmed[len(recorded) :]
    assert len(recorded) == sum(len(e) + 1 for e in Dataset(recording, with_pictures=False))
    assert all(np.array_equal(a, b) for a, b in zip(recorded, again, strict=True))
    for a, b in zip(Dataset(recording), Dataset(new), strict=True):
        assert np.array_equal(a.obs["joint_pos"], b.obs["joint_pos"])
        assert np.array_equal(a.action, b.action) and a.seed == b.seed and a.task == b.task
    words = ["--cameras", "overhead", "wrist", "--image-size", 48, 64, "--grid", "--episodes", 0, 2]
    found = answer(inside("replay", recording, *words, "--json"))
    names = sorted(Path(file).name for file in found["files"])
    assert names == [
        "episode_000000_overhead.mp4", "episode_000000_wrist.mp4", "episode_000002_overhead.mp4",
        "episode_000002_wrist.mp4", "grid_overhead.mp4", "grid_wrist.mp4",
    ]  # fmt: skip
    with av.open(str(recording / "replay" / "grid_wrist.mp4")) as film:
        frame = next(film.decode(video=0))
        assert (frame.height, frame.width) == (48, 128)


@pytest.mark.parametrize("renderer", ["fast", "rays", "splat", "hybrid"])
def test_other_renderers(inside, tmp_path, renderer):
    """Of a task whose splats are shipped: others have to be made first."""
    lift = "so101/LiftCube-v0"
    inside("record", lift, "--episodes", 1, "--format", "states", "--out", tmp_path / "r")
    words = ["--renderer", renderer, "--image-size", 24, 32, "--no-check"]
    (file,) = answer(inside("replay", tmp_path / "r", *words, "--json"))["files"]
    assert Path(file).stat().st_size > 500


def test_films_need_no_torch(recording, tmp_path):
    """Whoever draws episodes again trains nothing."""
    ended = maniple_without_torch("replay", recording, "--out", tmp_path / "films")
    assert ended.returncode == 0, ended.stderr
    assert list((tmp_path / "films").glob("*.mp4"))


def test_a_recording_goes_on(inside, recording):
    assert "already" in inside("record", REACH, "--out", recording, code=2).err
    words = ["--cameras", "front", "--image-size", 32, 48, "--append", "--episodes", 1]
    inside("record", REACH, "--out", recording, *words)
    assert [e.seed for e in Dataset(recording, with_pictures=False)] == [0, 1, 2, 3]
    folder = states_in(recording)
    assert [read_trajectory(folder, n).seed for n in numbers_in(folder)] == [0, 1, 2, 3]


def test_chance_plays_alike_in_any_number_of_environments(inside, tmp_path):
    for count in (1, 3):
        words = ["--policy", "random", "--episodes", 3, "--format", "states", "--num-envs", count]
        inside("record", REACH, *words, "--out", tmp_path / str(count))
    for number in range(3):
        a, b = (read_trajectory(tmp_path / c / "states", number) for c in ("1", "3"))
        assert a.states.integration.tobytes() == b.states.integration.tobytes()


def test_a_changed_action_is_found(inside, recording):
    path = recording / "states" / "episode_000001.npz"
    arrays = dict(np.load(path))
    arrays["action"][1] = -arrays["action"][1]
    np.savez(path, **arrays)
    printed = inside("replay", recording, "--no-film")
    assert "2 of 3 episodes follow bit for bit" in printed.out
    assert "episode 1 departs after action 2" in printed.out


def test_another_version_s_recording(inside, recording):
    path = recording / "states" / "episode_000000.json"
    path.write_text(path.read_text().replace('"mujoco": "', '"mujoco": "1.'))
    printed = inside("replay", recording, "--no-film", "--episodes", 0)
    assert "note     recorded with mujoco 1." in printed.out


def rewritten(recording, **change):
    for path in (recording / "states").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"task": "os:system"}, "add --task os:system"),
        ({"task": "so101/PushCube-v0"}, "comes from another task"),
        ({"task": "nothing"}, "No task is named"),
        ({"settings": {"cameras": 5}}, "cameras is 5"),
        ({"settings": {"nonsense": 1}}, "no option 'nonsense'"),
        ({"settings": {"width": "x"}}, "width is 'x'"),
        ({"settings": {"perturb": {"mass": 1e9}}}, "mass"),
        ({"settings": {"backend": "rlbench"}}, ""),
    ],
)
def test_hostile_facts(inside, recording, change, says):
    rewritten(recording, **change)
    error = inside("replay", recording, "--image-size", 24, 32, code=2).err
    assert says in error and error.count("\n") == 1 and error.startswith("maniple: ")


def test_what_cannot_be_replayed(inside, recording, tmp_path):
    words = ["--episodes", 1, "--format", "lerobot", "--out", tmp_path / "d"]
    inside("record", REACH, *words)
    assert "without the simulator's states" in inside("replay", tmp_path / "d", code=2).err
    assert "not there" in inside("replay", tmp_path / "nowhere", code=2).err
    (tmp_path / "empty").mkdir()
    assert "holds no states" in inside("replay", tmp_path / "empty", code=2).err
    (tmp_path / "file").write_text("")
    words = ["--no-check", "--out", tmp_path / "file" / "x"]
    assert "cannot be made" in inside("replay", recording, *words, code=2).err
    assert "no episode 9" in inside("replay", recording, "--episodes", 9, code=2).err


def test_what_cannot_be_recorded(inside, tmp_path):
    out = ["--out", tmp_path / "r"]
    assert "Did you mean" in inside("record", "so101/Lift-v0", *out, code=2).err
    assert "never end" in inside("record", "LeRobot-v0", "--policy", "random", *out, code=2).err
    assert "no scripted expert" in inside("record", "LeRobot-v0", *out, code=2).err
    assert "--policy is" in inside("record", REACH, "--policy", "nobody", *out, code=2).err
    assert "below 2**62" in inside("record", REACH, "--seed", 10**23, *out, code=2).err
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "below"
    for words in (("record", REACH, "--out"), ("list", "--pictures"),
                  ("eval", REACH, "--policy", "expert", "--page")):  # fmt: skip
        error = inside(*words, nowhere / "x", code=2).err
        assert "cannot be made" in error and error.count("\n") == 1
    assert "is a file" in inside("record", REACH, "--out", tmp_path / "file", code=2).err


OWN = """
from pathlib import Path
import numpy as np
from gymnasium.spaces import Box, Dict
import maniple

class Swing(maniple.ExtendedTask):
    XML_PATH = Path(MODEL)
    ACTION_SPACE = Box(-1.0, 1.0, (1,), np.float64)
    OBSERVATION_SPACE = Dict({"speed": Box(-50.0, 50.0, (1,), np.float64)})

    def get_observation(self, physics):
        return {"speed": physics.data.qvel.copy()}

    def get_reward(self, physics):
        return 0.0

maniple.register("mine/Swing-v0", Swing)
"""


def test_a_task_of_ones_own(inside, tmp_path, monkeypatch):
    """It is imported where the user names it, never because a file does."""
    model = Path(__file__).parents[2] / "examples" / "models" / "pendulum.xml"
    (tmp_path / "own_swing.py").write_text(OWN.replace("MODEL", repr(str(model))))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("maniple.registry.TASKS", dict(TASKS))
    task = "own_swing:mine/Swing-v0"
    words = ["--policy", "random", "--episodes", 2, "--max-episode-steps", 20]
    inside("record", task, *words, "--out", "r")
    rewritten(tmp_path / "r", task="elsewhere:mine/Other-v0")
    assert "add --task elsewhere:" in inside("replay", "r", code=2).err
    found = answer(inside("replay", "r", "--task", task, "--json", "--image-size", 24, 32))
    assert found["is_exact"] and len(found["files"]) == 2
    words += ["--perturb", "mass", "--out", "s"]
    assert "cannot be perturbed" in inside("record", task, *words, code=2).err


@pytest.mark.alone
def test_ctrl_c_keeps_what_was_told(tmp_path):
    words = [sys.executable, "-m", "maniple.cli", "record", REACH, "--episodes", "5000",
             "--out", str(tmp_path / "r")]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        told = [run.stdout.readline() for _ in range(2)]
        run.send_signal(signal.SIGINT)
        rest, error = run.communicate(timeout=60)
    assert run.returncode == 130 and "Traceback" not in error
    told += [line for line in rest.splitlines() if line.startswith("episode ")]
    assert len(numbers_in(tmp_path / "r" / "states")) >= len(told)
    assert len(Dataset(tmp_path / "r")) >= len(told)


def test_datasets_say_of_which_task_they_are(inside, tmp_path):
    """Also those that were drawn again or exported: the page needs it to play them."""
    seen, drawn, other = tmp_path / "seen", tmp_path / "drawn", tmp_path / "other"
    inside("record", "so101/Reach-v0", "--episodes", "1", "--out", seen, "--format", "both")
    inside("replay", seen, "--dataset", drawn, "--cameras", "front", "--image-size", "16", "16",
           "--no-film")  # fmt: skip
    inside("data", "export", drawn, "--out", other)
    for folder in (seen, drawn, other):
        assert read_origin(folder)["task"] == "so101/Reach-v0", folder
        assert read_origin(folder)["control"] == "ee"
    assert read_origin(other)["renderer"] == read_origin(drawn)["renderer"] == "fast"


def test_demonstrations_must_mean_what_the_environments_do(inside, tmp_path):
    """Recorded by poses, trained with steps of the tip: refused; recorded with steps: learned."""
    other, same = tmp_path / "other", tmp_path / "same"
    small = ("--episodes", 2, "--format", "lerobot", "--num-envs", 2)
    inside("record", "push_button", "--out", other, *small)
    inside("record", "push_button", "--out", same, *small, "--control", "delta_position")
    train = ("train", "sac", "--task", "push_button", "--demos", 0, "--max-steps", 40,
             "--num-envs", 4, "--eval-n-trajs", 0)  # fmt: skip
    for flag in ("--demo-path", "--demos-from"):
        told = inside(*train, flag, other, "--run-dir", tmp_path / f"a{flag}", code=2)
        assert "act by 'ik', and the environments by 'delta_position'" in told.err
        inside(*train, flag, same, "--run-dir", tmp_path / f"b{flag}")


def test_numbers_of_states_and_dataset_stay_the_same(inside, tmp_path):
    """Appending to only one of them would write over states that are there."""
    out = tmp_path / "r"
    inside("record", REACH, "--episodes", 3, "--format", "states", "--out", out)
    before = read_trajectory(states_in(out), 0).seed
    told = inside("record", REACH, "--episodes", 1, "--append", "--out", out, code=2)
    assert "was recorded with --format states: add to it with the same" in told.err
    assert read_trajectory(states_in(out), 0).seed == before


def test_one_step_is_one_step(tmp_path, inside):
    words = ["--policy", "random", "--max-episode-steps", 1, "--episodes", 1, "--format", "states"]
    told = inside("record", "so101/Reach-v0", *words, "--out", tmp_path / "d").out
    assert ", 1 step, " in told and "1 episode of" in told and "1 steps" not in told


@pytest.mark.parametrize("far", [1e200, 9e9])
def test_absurd_states_leave_no_log_behind(tmp_path, inside, monkeypatch, far):
    """MuJoCo writes MUJOCO_LOG.TXT where it stands when a state breaks."""
    words = ["--policy", "random", "--max-episode-steps", 3, "--episodes", 4, "--format", "states"]
    inside("record", "so101/Reach-v0", *words, "--out", tmp_path / "d")
    for file in (tmp_path / "d" / "states").glob("*.npz"):
        arrays = dict(np.load(file))
        arrays["integration"][:, 1:8] = far
        np.savez(file, **arrays)
    monkeypatch.chdir(tmp_path)
    code = 2 if far > 1e10 else 0
    told = inside("replay", tmp_path / "d", "--image-size", 16, 16, "--cameras", "front", code=code)
    if code:
        assert "MuJoCo's numbers are 1e+10 at most" in told.err and told.err.count("\n") == 1
    assert not list(tmp_path.rglob("MUJOCO_LOG.TXT"))


def test_pictures_that_no_memory_holds_are_refused(tmp_path, inside):
    words = ["--policy", "random", "--max-episode-steps", 3, "--episodes", 1]
    inside("record", "so101/Reach-v0", *words, "--format", "states", "--out", tmp_path / "d")
    size = ("--image-size", 100000, 100000)
    for command in (
        ("replay", tmp_path / "d", *size),
        ("record", "so101/Reach-v0", *words, "--cameras", "front", *size, "--out", tmp_path / "e"),
        ("bench", "--task", "so101/Reach-v0", *size),
    ):
        told = inside(*command, code=2)
        assert "a side has 8192 pixels at most" in told.err and told.err.count("\n") == 1
