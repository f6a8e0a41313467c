"""What cannot be meant is refused in one line, before anything is written."""

import pytest
import yaml

from maniple.cli.train.phase import _given
from maniple.core.errors import BadConfig
from maniple.world.config import AdversarialConfig, TrainingConfig, WorldConfig, read_config
from maniple.world.phase import rounds_of


def settings(folder):
    return yaml.safe_load((folder / "config.yaml").read_text())


@pytest.mark.parametrize("exists", [True, False])
def test_a_resumed_folder_must_hold_a_run(inside, tmp_path, exists, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if exists:
        (tmp_path / "none").mkdir()
    assert "none holds no run" in inside("train", "teacher", "--resume", "none", code=2).err


def test_sections_of_other_phases_arrive(inside, small, tmp_path, teacher_dir):
    path = tmp_path / "c.yaml"
    path.write_text("student: {horizon: 2, samples: 9}\n")
    words = ["train", "adv", "1", "1", *small, "--teacher-path", teacher_dir, "--num-episodes", "1"]
    inside(*words, "--config", path, "--output-dir", tmp_path / "run")
    found = settings(tmp_path / "run")
    assert (found["student"]["horizon"], found["student"]["samples"]) == (2, 9)
    assert (tmp_path / "run/checkpoint-1").is_dir(), "--num-episodes counts here, too"


def test_what_is_typed_is_known(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("environment: {renderer: auto}\n")
    words = ["--task", "so101/PushCube-v0", "--image-size", "64", "64", "--config", str(path)]
    assert _given(words, goes_on=False) == {"task", "image_size", "renderer"}
    assert _given(["--student.output-dir", "task"], goes_on=False) == set()
    assert {"cameras", "state"} <= _given([], goes_on=True), "a run that goes on stays as it was"


def test_a_typed_default_is_not_overruled(inside, small, tmp_path, teacher_dir):
    """The teacher saw 32 x 32 pictures; 64 x 64 is the default, and it was typed."""
    words = ["train", "student", "1", "1", *small, "--teacher-path", teacher_dir]
    words += ["--image-size", "64", "64", "--output-dir", tmp_path / "run"]
    assert "The teacher sees" in inside(*words, code=2).err


def test_rounds_of_phase_3():
    config = WorldConfig(TrainingConfig(num_episodes=7))
    assert rounds_of(config, "adversarial") == 7
    both = WorldConfig(config.training, adversarial=AdversarialConfig(total_iterations=3))
    assert (rounds_of(both, "adversarial"), rounds_of(both, "teacher")) == (3, 7)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"training: 5\n", "section training should hold a table of settings, not 5"),
        (b"- a\n", "table of names, not list"),
        (b"\xff\xfe\x00\x93", "UTF-8"),
        (b"training: {num_episodes: many}\n", r"training\.num_episodes"),
        (b"training: {num_episodes: 0}\n", r"training\.num_episodes is 0"),
        (b"environment: {cameras: 5}\n", "environment"),
        (b"training: {buffer_frames: 50}\n", "buffer_frames is 50, but an episode of 50 steps"),
        (b"training: {learning_rate: 0}\n", "learning_rate is 0; it must be larger"),
        (b"teacher: {output_dir: 5}\n", "teacher"),
    ],
)
def test_bad_config_files(tmp_path, text, told):
    path = tmp_path / "c.yaml"
    path.write_bytes(text)
    with pytest.raises(BadConfig, match=told) as error:
        read_config(path)
    assert "\n" not in str(error.value)


def test_a_folder_is_no_config(tmp_path):
    with pytest.raises(BadConfig, match="is a folder"):
        read_config(tmp_path)


def test_models_are_named(inside, small, tmp_path):
    words = ["train", "wm", "1", "1", *small, "--model", "huge", "--output-dir", tmp_path / "r"]
    assert "There are: nano, small, base, latent" in inside(*words, code=2).err


def test_a_finished_run_says_so(inside, small, tmp_path):
    words = ["train", "wm", "1", "1", *small, "--num-episodes", "1", "--output-dir", tmp_path / "r"]
    inside(*words)
    told = inside("train", "teacher", "--resume", tmp_path / "r").err
    assert "already at episode 1; nothing to do" in told


def test_paths_are_checked_before_ranks_start(inside, small, tmp_path):
    words = ["train", "student", "2", "1", *small, "--teacher-path", tmp_path / "none"]
    told = inside(*words, "--output-dir", tmp_path / "run", code=2).err
    assert "There is no checkpoint at" in told and not (tmp_path / "run").exists()


def test_a_config_of_comments_only(tmp_path):
    (tmp_path / "c.yaml").write_text("# nothing yet\n\n")
    assert read_config(tmp_path / "c.yaml") == WorldConfig()
