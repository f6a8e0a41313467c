"""A later phase knows what it was begun with, wherever that lies now."""

import shutil

import pytest
import yaml
from conftest import SMALL_PHASE

from maniple.cli.main import main
from maniple.core.checked_file import BadFile
from maniple.run.folder import RunFolder
from maniple.world.origin import begun_with

QUICK = ["--horizon", "3", "--samples", "8", "--save-every", "1"]


@pytest.fixture(scope="module")
def phases(tmp_path_factory):
    """A teacher that went on after a student began with it, and that student."""
    folder = tmp_path_factory.mktemp("phases")

    def run(*words):
        assert main([str(word) for word in ("train", *words)]) == 0

    words = ["1", "2", *SMALL_PHASE, "--save-every", "1"]
    run("teacher", *words, "--output-dir", folder / "teacher", "--num-episodes", "1")
    run("student", *words, *QUICK, "--teacher-path", folder / "teacher", "--num-episodes", "1",
        "--output-dir", folder / "student")  # fmt: skip
    run("teacher", "--resume", folder / "teacher", "--num-episodes", "2")
    return folder


@pytest.fixture
def moved(phases, tmp_path):
    """Copies of both, elsewhere: the teacher is no more where the student found it."""
    shutil.copytree(phases / "student", tmp_path / "student")
    shutil.copytree(phases / "teacher", tmp_path / "elsewhere")
    change(tmp_path / "student", lambda c: c["student"].update(teacher_path="gone"))
    return tmp_path


def change(folder, how):
    path = folder / "config.yaml"
    config = yaml.safe_load(path.read_text())
    how(config)
    path.write_text(yaml.safe_dump(config))


def go_on(folder):
    return ["train", "student", "--resume", folder / "student", "--num-episodes", "2"]


def test_a_teacher_may_move_and_go_on(inside, moved):
    assert "--teacher-path" in inside(*go_on(moved), code=2).err
    inside(*go_on(moved), "--teacher-path", moved / "elsewhere")
    begun = begun_with(RunFolder(moved / "student"))
    assert begun["teacher"].checkpoint == "checkpoint-1"
    assert (moved / "student/checkpoint-2/manifest.json").exists()


def test_a_checkpoint_may_be_called_otherwise(inside, moved):
    other = (moved / "elsewhere/checkpoint-1").rename(moved / "elsewhere/checkpoint-0001")
    inside(*go_on(moved), "--teacher-path", other)
    assert (moved / "student/checkpoint-2/manifest.json").exists()


def test_another_teacher_is_refused(inside, moved):
    newer = moved / "elsewhere/checkpoint-2"
    told = inside(*go_on(moved), "--teacher-path", newer, code=2).err
    assert "checkpoint-1" in told and "another one" in " ".join(told.split())


def test_without_a_record_paths_are_compared(inside, moved):
    """As of a run that was begun before there was one."""
    change(moved / "student", lambda c: c.pop("begun_with"))
    told = inside(*go_on(moved), "--teacher-path", moved / "elsewhere", code=2).err
    assert "teacher_path" in told and "gone" in told
    change(moved / "student", lambda c: c["student"].update(teacher_path=str(moved / "elsewhere")))
    inside(*go_on(moved))
    assert begun_with(RunFolder(moved / "student")) == {}


@pytest.mark.parametrize(
    "found",
    ["hello", None, {"teacher": "x"}, {"teacher": {"sha256": "abc"}},
     {"teacher": {"checkpoint": 1, "sha256": "abc"}}, {"teacher": {"checkpoint": "", "more": 2}},
     {"nobody": {"checkpoint": "checkpoint-1", "sha256": "abc"}}],
)  # fmt: skip
def test_a_broken_record_is_told(tmp_path, found):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"begun_with": found}))
    with pytest.raises(BadFile, match=r"begun_with in .*config\.yaml"):
        begun_with(RunFolder(tmp_path))


def test_no_student_joins_later(inside, small, phases, tmp_path):
    words = ["train", "adversarial", "1", "2", *small, "--save-every", "1", "--warm-up", "1"]
    words += ["--teacher-checkpoint", phases / "teacher", "--output-dir", tmp_path]
    inside(*words, "--total-iterations", "1")
    told = inside("train", "adversarial", "--resume", tmp_path, "--total-iterations", "2",
                  "--student-checkpoint", phases / "student", code=2).err  # fmt: skip
    assert "without a student" in " ".join(told.split())
