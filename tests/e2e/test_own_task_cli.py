"""A user's own task goes through every verb by the name 'module:id'."""

import json
import subprocess
import sys

import pytest

TASK = "wave_hello:mine/WaveHello-v0"
SMALL = ["--num-envs", "2", "--max-steps", "120", "--random-steps", "40", "--training-starts", "40",
         "--batch-size", "16", "--eval-n-trajs", "2", "--demos", "1"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which somebody has begun a task."""
    folder = tmp_path_factory.mktemp("mine")
    maniple(folder, "new", "task", "WaveHello")
    return folder


def maniple(folder, *words, code=0):
    """Run a command there."""
    command = [sys.executable, "-P", "-m", "maniple", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def answer(done):
    """The JSON that a command prints last."""
    return json.loads(done.stdout.splitlines()[-1])


def test_the_skeleton_passes_its_own_test(folder):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_wave_hello.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=folder)
    assert done.returncode == 0, done.stdout
    assert "exists already" in maniple(folder, "new", "task", "wave_hello", code=2).stderr
    assert "no name for a file" in maniple(folder, "new", "task", "../x", code=2).stderr


def test_train_resume_eval(folder):
    run = answer(maniple(folder, "train", "sac", "--task", TASK, *SMALL, "--json"))["run_dir"]
    assert (folder / run / "config.yaml").read_text().splitlines()[1] == f"task: {TASK}"
    words = ("--resume", "--run-dir", run, "--max-steps", "160", "--json")
    assert answer(maniple(folder, "train", "sac", *words))["steps"] == 160
    words = ("--checkpoint", run, "--episodes", "2", "--no-video", "--json")
    assert answer(maniple(folder, "eval", *words))["task"] == TASK
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    lost = maniple(elsewhere, "eval", "--checkpoint", str(folder / run), code=2)
    assert "There is no module 'wave_hello'" in lost.stderr


def test_list_takes_the_name_that_every_other_verb_takes(folder):
    assert [row["id"] for row in answer(maniple(folder, "list", TASK, "--json"))["tasks"]] == [TASK]
    told = maniple(folder, "list", TASK.replace("Hello", "Helo"), code=2).stderr
    assert f"Did you mean {TASK}" in told


def test_bench_with_workers_demos_and_list(folder):
    words = ("--task", TASK, "--num-envs", "2", "--steps", "4", "--engine", "process", "--json")
    assert answer(maniple(folder, "bench", *words))["engine"] == "process"
    pytest.importorskip("pyarrow")
    words = ("--task", TASK, "--episodes", "2", "--out", "demos", "--json")
    assert answer(maniple(folder, "demos", "record", *words))["recorded"] == 2
    (task,) = answer(maniple(folder, "list", "wave_hello", "--json"))["tasks"]
    assert task["id"] == TASK and task["expert"]


def test_mistakes_are_named(folder):
    (folder / "broken.py").write_text("1 / 0\n")
    for task, says in (
        ("wave_hello:mine/Nothing-v0", "registers no task 'mine/Nothing-v0'"),
        ("nowhere:mine/X-v0", "no module 'nowhere'"),
        ("broken:mine/X-v0", "ZeroDivisionError"),
    ):
        done = maniple(folder, "bench", "--task", task, code=2)
        assert says in done.stderr and len(done.stderr.splitlines()) == 1
