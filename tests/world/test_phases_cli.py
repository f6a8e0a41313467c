"""Every alias, argument count and flag of the three phases does what it says."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file

from maniple.cli.main import ALIASES
from maniple.cli.train import phase
from maniple.core.errors import BadConfig
from maniple.world.config import EnvironmentConfig, WorldConfig, read_config
from maniple.world.episode_cache import load_cached
from maniple.world.make import make_envs, make_player
from maniple.world.noise import PinkNoise


def lines(folder):
    return [
        json.loads(line) for line in (folder / "episode_metrics.jsonl").read_text().splitlines()
    ]


def settings(folder):
    return yaml.safe_load((folder / "config.yaml").read_text())


def told(name, *words):
    """Parse words as the command line does."""
    import tyro

    verb = f"train {name}"
    prepared = phase.prepare(verb, list(words))
    return tyro.cli(phase.options_of(verb), args=prepared, default=phase.defaults(verb, prepared))


def test_the_tree_that_users_know(teacher_dir):
    found = {str(p.relative_to(teacher_dir)) for p in teacher_dir.rglob("*") if p.is_file()}
    for name in ("samples/episode_000002.png", "videos/episode_000002.mp4",
                 "checkpoint-2/weights.safetensors",
                 "checkpoint-2/state.json", "checkpoint-2/manifest.json", "episode_metrics.jsonl",
                 "train.log", "config.yaml"):  # fmt: skip
        assert name in found
    assert any(name.startswith("tensorboard/") for name in found)
    last = lines(teacher_dir)[-1]
    assert {"quality/gain_db_h1", "quality/sensitivity_db_h1", "loss/picture"} <= last.keys()
    assert settings(teacher_dir)["phase"] == "teacher"


def test_aliases_lead_to_the_phases():
    assert {alias.split()[1]: verb.split()[1] for alias, verb in ALIASES.items()} == {
        "phase1": "teacher", "wm": "teacher", "phase2": "student", "explorer": "student",
        "phase3": "adversarial", "adv": "adversarial",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "gpus", "rows"),
    [([], None, 8), (["1"], 1, 8), (["2", "3"], 2, 3), (["1", "1", "--num_episodes", "500"], 1, 1)],
)
def test_numbers_after_the_phase(words, gpus, rows):
    options = told("teacher", *words)
    assert (options.num_gpus, options.environment.num_envs) == (gpus, rows)


@pytest.mark.parametrize("words", [["train", "phase1"], ["train", "wm"], ["train", "1", "2"]])
def test_aliases_and_no_phase_train_a_teacher(inside, small, tmp_path, words):
    inside(
        *words, *small, "--num-envs", "1", "--num-episodes", "1", "--output-dir", tmp_path / "run"
    )
    assert settings(tmp_path / "run")["phase"] == "teacher"


def test_an_unknown_phase_is_refused(inside):
    assert "No command is named 'train nonsense'" in inside("train", "nonsense", code=2).err


# Every flag of every phase: what is typed, and where it must arrive.
FLAGS = {
    "num_episodes": 7, "steps_per_episode": 33, "batch_size": 5, "learning_rate": 0.002,
    "updates_per_episode": 4, "sequence_length": 6, "gradient_accumulation": 2,
    "mixed_precision": "bf16", "save_every": 3, "log_every": 2, "held_out": 3,
    "buffer_frames": 999, "seed": 11, "max_minutes": 1.5, "torch_threads": 2, "device": "cpu",
}  # fmt: skip


@pytest.mark.parametrize("chosen", ["teacher", "student", "adversarial"])
@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize(
    "form", ["--{dashes}", "--{name}", "--training.{name}", "training.{name}="]
)
def test_training_flags_arrive_in_every_spelling(chosen, name, form):
    word, value = form.format(name=name, dashes=name.replace("_", "-")), str(FLAGS[name])
    typed = [word + value] if word.endswith("=") else [word, value]
    assert getattr(told(chosen, *typed).training, name) == FLAGS[name]


def test_output_dir_and_other_phase_flags():
    assert str(told("teacher", "--output_dir", "here").teacher.output_dir) == "here"
    assert str(told("teacher", "--run-dir", "here").teacher.output_dir) == "here"
    assert told("teacher", "--no-decoder").teacher.decoder is False
    for flag in ("--teacher_path", "--teacher-checkpoint"):
        assert str(told("student", flag, "t").student.teacher_path) == "t"
        assert str(told("adversarial", flag, "t").adversarial.teacher_checkpoint) == "t"
    words = ["--student_checkpoint", "s", "--total_iterations", "9", "--no-prioritise"]
    options = told("adversarial", *words).adversarial
    assert (str(options.student_checkpoint), options.total_iterations) == ("s", 9)
    assert options.prioritise is False


def test_a_flag_of_another_phase_is_refused(inside):
    inside("train", "teacher", "--student.algorithm", "ppo", code=2)


def test_config_file_as_it_is(tmp_path):
    """The sections and names of the original's rl_config.yaml."""
    path = tmp_path / "rl_config.yaml"
    path.write_text(
        "training: {num_episodes: 100, steps_per_episode: 50, batch_size: 8, learning_rate: 1.0e-4,"
        " save_every: 50, log_every: 10}\nteacher: {output_dir: ./outputs/teacher_rl}\n"
        "logging: {console_level: INFO, file_level: DEBUG}\n"
    )
    config = read_config(path)
    assert config.training.batch_size == 8 and config.training.learning_rate == 1e-4
    options = told("teacher", "--config", str(path), "--batch_size", "3")
    assert options.training.batch_size == 3 and options.training.learning_rate == 1e-4
    path.write_text("training: {num_episode: 100}\n")
    with pytest.raises(BadConfig, match=r"training\.num_episode\. Did you mean num_episodes\?"):
        read_config(path)
    path.write_text("trainin: {}\n")
    with pytest.raises(BadConfig, match="no section 'trainin'"):
        read_config(path)


def test_log_and_save_periods(inside, small, tmp_path):
    words = [
        *small,
        "--num-envs",
        "1",
        "--num-episodes",
        "4",
        "--log-every",
        "2",
        "--save-every",
        "2",
    ]
    inside("train", "teacher", *words, "--output-dir", tmp_path / "run")
    assert sorted({line["step"] for line in lines(tmp_path / "run")}) == [2, 4]
    assert {p.name for p in (tmp_path / "run").glob("checkpoint-*")} == {
        "checkpoint-2",
        "checkpoint-4",
    }
    assert {p.name for p in (tmp_path / "run/samples").iterdir()} == {
        "episode_000002.png", "episode_000004.png"
    }  # fmt: skip


def test_levels(inside, small, tmp_path):
    words = [*small, "--num-envs", "1", "--num-episodes", "1", "--console-level", "error"]
    done = inside(
        "train", "teacher", *words, "--file-level", "INFO", "--output-dir", tmp_path / "run"
    )
    assert "episode 1" not in done.out
    text = (tmp_path / "run/train.log").read_text()
    assert "INFO episode 1" in text and "DEBUG" not in text


def test_settings_change_what_is_learned(inside, small, tmp_path):
    """Seed, rate, accumulation, precision, sequence, source: each leads to other weights."""
    ways = {
        "plain": [], "seed": ["--seed", "5"], "rate": ["--learning-rate", "0.01"],
        "accumulation": ["--gradient-accumulation", "2"],
        "precision": ["--mixed-precision", "bf16"],
        "sequence": ["--sequence-length", "4"], "source": ["--source", "random"],
        "updates": ["--updates-per-episode", "2"], "batch": ["--batch-size", "2"],
        "state": ["--state", "all"], "again": [],
    }  # fmt: skip
    found = {}
    for name, words in ways.items():
        folder = tmp_path / name
        inside(
            "train", "wm", "1", "1", *small, "--num-episodes", "1", *words, "--output-dir", folder
        )
        arrays = load_file(folder / "checkpoint-1/weights.safetensors")
        key = "learner.updater.model.model.mix.weight"
        found[name] = arrays[key].tobytes()
    assert found.pop("again") == found["plain"], "the same command, the same weights"
    assert len(set(found.values())) == len(found)


def test_teachers_refusals(inside, small, tmp_path, teacher_dir):
    assert (
        "holds a run already"
        in inside("train", "teacher", *small, "--output-dir", teacher_dir, code=2).err
    )
    assert "no whole checkpoint" in inside("train", "teacher", "--resume", tmp_path, code=2).err
    assert (
        "--teacher-path"
        in inside("train", "student", *small, "--output-dir", tmp_path / "s", code=2).err
    )
    missing = inside("train", "adv", "--teacher_checkpoint", tmp_path / "no", code=2).err
    assert "There is no checkpoint at" in missing
    assert "fp16 needs a GPU" in inside("train", "teacher", *small, "--mixed-precision", "fp16",
                                        "--output-dir", tmp_path / "t", code=2).err  # fmt: skip
    wrong = inside("train", "student", "--resume", teacher_dir, code=2).err
    assert "is a run of phase 'teacher'" in wrong


def test_more_gpus_than_are_visible_are_refused(inside, small, monkeypatch, tmp_path):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    told = inside("train", "teacher", "4", "1", *small, "--output-dir", tmp_path / "r", code=2).err
    assert "4 GPUs were asked for, and 1 can be seen" in told


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", "train teacher 1 1"),
        ("wm", "train wm 1 1"),
        ("teacher 2", "train teacher 2 1"),
        ("teacher 4 2 --num_episodes 500", "train teacher 4 2 --num_episodes 500"),
        ("student 4 1 --teacher_path d", "train student 4 1 --teacher_path d"),
        ("--num_episodes 5", "train teacher 1 1 --num_episodes 5"),
    ],
)
def test_the_script_has_the_old_order(tmp_path, words, expected):
    """The original failed with fewer than three arguments."""
    script = tmp_path / "scripts/train.sh"
    script.parent.mkdir()
    script.write_text((Path(__file__).parents[2] / "scripts/train.sh").read_text())
    fake = tmp_path / ".venv/bin/maniple"
    fake.parent.mkdir(parents=True)
    fake.write_text('#!/bin/sh\necho "$@"\n')
    fake.chmod(0o755)
    done = subprocess.run(["bash", str(script), *words.split()], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == expected
    bad = subprocess.run(["bash", str(script), "nonsense"], capture_output=True, text=True)
    assert bad.returncode != 0 and "usage" in bad.stderr


def test_a_dataset_as_the_source(inside, tmp_path):
    """Two cameras, read from disk; no environment is made."""
    pytest.importorskip("pyarrow")
    words = ["--task", "so101/Reach-v0", "--episodes", "4", "--cameras", "front", "wrist"]
    inside("demos", "record", *words, "--image-size", "32", "32", "--out", tmp_path / "demos")
    short = ["--num-episodes", "2", "--updates-per-episode", "1", "--batch-size", "2"]
    short += ["--cache", tmp_path / "cache"]
    inside("train", "teacher", "--dataset", tmp_path / "demos", "--task", "so101/Reach-v0", *short,
           "--sequence-length", "3", "--output-dir", tmp_path / "run")  # fmt: skip
    state = json.loads((tmp_path / "run/checkpoint-2/state.json").read_text())
    shapes = state["state"]["dict"]["learner"]["dict"]["shapes"]["dict"]
    assert [name["value"] for name in shapes["cameras"]["list"]] == ["front_rgb", "wrist_rgb"]
    assert "loss/picture" in lines(tmp_path / "run")[-1]
    check_cache(tmp_path)


def check_cache(tmp_path):
    """What was decoded once is read again bit by bit, and not for another dataset or size."""
    (folder,) = (tmp_path / "cache").iterdir()
    size = (64, 64)
    plain, again = (load_cached(tmp_path / "demos", c, size) for c in (None, tmp_path / "cache"))
    for a, b in zip(plain, again, strict=True):
        assert all(np.array_equal(a.obs[n], b.obs[n]) for n in a.obs)
        assert np.array_equal(a.action, b.action) and a.success == b.success
    assert plain[0].obs["front_rgb"].shape[1:] == (64, 64, 3)
    assert isinstance(again[0].obs["front_rgb"], np.memmap), "what is not looked at is not read"
    own = load_cached(tmp_path / "demos", tmp_path / "cache")
    assert own[0].obs["front_rgb"].shape[1:] == (32, 32, 3)
    (tmp_path / "demos/meta/more").write_text("changed")
    load_cached(tmp_path / "demos", tmp_path / "cache", size)
    assert len(list((tmp_path / "cache").iterdir())) == 3 and folder.exists()
    (tmp_path / "demos/meta/more").unlink()
    torn = next(folder.glob("obs.front_rgb.raw"))
    torn.write_bytes(torn.read_bytes()[:-1])
    with pytest.raises(BadConfig, match=r"cannot be used: .*Delete it"):
        load_cached(tmp_path / "demos", tmp_path / "cache", size)


def test_a_mix_without_an_expert_that_sees_enough_is_noise():
    """PiperMobileRobot-v0 tells one state; its expert needs where the banana is."""
    config = WorldConfig(
        environment=EnvironmentConfig("PiperMobileRobot-v0", 2, image_size=(16, 16))
    )
    envs = make_envs(config)
    player = make_player(config, envs, 0)
    envs.close()
    assert isinstance(player, PinkNoise)


def test_later_phases_tell_the_teachers_task(inside, small, tmp_path, teacher_dir):
    """Not the default one, which they would play without a teacher."""
    assert small[0] == "--task"
    words = ["train", "student", "1", "2", *small[2:], "--teacher-path", teacher_dir, "--json"]
    told = inside(*words, "--num-episodes", "1", "--horizon", "2", "--output-dir", tmp_path)
    assert json.loads(told.out.strip().splitlines()[-1])["task"] == small[1]
    assert f"student on {small[1]}" in told.err
