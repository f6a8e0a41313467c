"""A phase that was stopped goes on to the very numbers of one that was not."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from maniple.core.errors import BadConfig


def numbers(folder):
    """All metrics but the clock."""
    lines = [
        json.loads(line) for line in (folder / "episode_metrics.jsonl").read_text().splitlines()
    ]
    return [{k: v for k, v in line.items() if not k.startswith("clock/")} for line in lines]


def arrays(folder, episode):
    return load_file(folder / f"checkpoint-{episode}/weights.safetensors")


def check_same(whole, parts, episode):
    assert numbers(whole)[-1] == numbers(parts)[-1]
    a, b = arrays(whole, episode), arrays(parts, episode)
    assert a.keys() == b.keys()
    for name in a:
        assert np.array_equal(a[name], b[name], equal_nan=True), name


SLOW = pytest.mark.slow


@pytest.mark.parametrize("model", ["nano", pytest.param("latent", marks=SLOW)])
def test_teacher(inside, small, tmp_path, model):
    words = ["train", "teacher", "1", "2", *small, "--model", model, "--save-every", "2"]
    # The learning rate falls over all episodes: both runs must plan the same number.
    inside(*words, "--num-episodes", "4", "--output-dir", tmp_path / "whole")
    inside(*words, "--num-episodes", "4", "--output-dir", tmp_path / "parts")
    cut_back(tmp_path / "parts", 2)
    inside("train", "teacher", "--resume", tmp_path / "parts")
    check_same(tmp_path / "whole", tmp_path / "parts", 4)


def cut_back(folder, episode):
    """Make it look as if the run had been killed after a checkpoint."""
    import shutil

    for path in folder.glob("checkpoint-*"):
        if int(path.name.rpartition("-")[2]) > episode:
            shutil.rmtree(path)


@pytest.mark.parametrize(
    "more",
    [
        ["--algorithm", "ppo", "--memory-approach", "1", "--raw-error", "1"],
        pytest.param(["--algorithm", "mpc"], marks=SLOW),
        pytest.param(["--algorithm", "ppo"], marks=SLOW),
    ],
)
def test_student(inside, small, tmp_path, teacher_dir, more):
    words = ["train", "student", "1", "2", *small, "--teacher-path", str(teacher_dir), *more]
    words += ["--save-every", "2", "--horizon", "3", "--samples", "8"]
    inside(*words, "--num-episodes", "4", "--output-dir", tmp_path / "whole")
    inside(*words, "--num-episodes", "4", "--output-dir", tmp_path / "parts")
    cut_back(tmp_path / "parts", 2)
    inside("train", "student", "--auto-resume", "--output-dir", tmp_path / "parts")
    check_same(tmp_path / "whole", tmp_path / "parts", 4)
    assert {"reward/disagreement", "reward/memory_approach", "reward/uncertainty",
            "reward/raw_error", "reward/action_cost", "coverage/gripper"} <= numbers(
                tmp_path / "parts")[-1].keys()  # fmt: skip


@pytest.mark.parametrize("algorithm", ["mpc", pytest.param("ppo", marks=SLOW)])
def test_adversarial(inside, small, tmp_path, teacher_dir, algorithm):
    student = tmp_path / "student"
    quick = ["--horizon", "3", "--samples", "8"]
    inside("train", "explorer", "1", "2", *small, "--teacher-path", teacher_dir, "--num-episodes",
           "1", "--algorithm", algorithm, *quick, "--output-dir", student)  # fmt: skip
    words = ["train", "adv", "1", "2", *small, "--teacher-checkpoint", teacher_dir, "--warm-up",
             "1",
             "--student-checkpoint", student, "--save-every", "5", "--total-iterations", "10",
             "--pool", "2"]  # fmt: skip
    inside(*words, "--output-dir", tmp_path / "whole")
    inside(*words, "--output-dir", tmp_path / "parts")
    cut_back(tmp_path / "parts", 5)
    inside("train", "phase3", "--resume", tmp_path / "parts")
    check_same(tmp_path / "whole", tmp_path / "parts", 10)
    last = numbers(tmp_path / "parts")[-1]
    assert {"error/explorer", "probe/db", "probe/rollbacks", "loss/picture"} <= last.keys()


def test_only_the_newest_is_gone_on_from(inside, small, tmp_path):
    words = ["train", "teacher", "1", "1", *small, "--save-every", "1", "--num-episodes", "2"]
    inside(*words, "--output-dir", tmp_path / "run")
    told = inside("train", "teacher", "--resume", tmp_path / "run/checkpoint-1", code=2).err
    assert "checkpoint-2 is" in told
    inside("train", "teacher", "--resume", tmp_path / "run/checkpoint-2", "--num-episodes", "3")
    assert (tmp_path / "run/checkpoint-3").is_dir()


def test_a_copied_folder_goes_on(inside, small, tmp_path):
    """A run is its folder, wherever that lies."""
    import shutil

    words = ["train", "teacher", "1", "2", *small, "--num-episodes", "2", "--save-every", "1"]
    inside(*words, "--output-dir", tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    shutil.rmtree(tmp_path / "first")
    cut_back(tmp_path / "copy", 1)
    inside("train", "teacher", "--resume", tmp_path / "copy")
    assert (tmp_path / "copy/checkpoint-2/manifest.json").exists()
    assert not (tmp_path / "first").exists()


def test_a_refused_resume_leaves_the_run(inside, small, tmp_path, monkeypatch):
    """What did not go on has changed nothing: settings, curves, lines after the checkpoint."""
    words = ["train", "teacher", "1", "2", *small, "--save-every", "1"]
    inside(*words, "--num-episodes", "1", "--output-dir", tmp_path)
    metrics = tmp_path / "episode_metrics.jsonl"
    with metrics.open("a") as file:  # as of a run that was killed later
        file.write(metrics.read_text().splitlines()[-1].replace('"step": 1', '"step": 2') + "\n")
    before = contents(tmp_path)
    monkeypatch.setattr("maniple.world.teacher.Teacher.load_state", refuse)
    told = inside("train", "teacher", "--resume", tmp_path, "--num-episodes", "9", code=2).err
    assert "does not fit" in told
    assert contents(tmp_path) == before


def contents(folder):
    """Every file but the log of words, which tells the refusal."""
    files = (f for f in folder.rglob("*") if f.is_file() and f.suffix not in (".log", ".lock"))
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def refuse(learner, state):
    raise BadConfig("This checkpoint does not fit.")
