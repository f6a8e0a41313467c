"""A checkpoint is whole or not there, and nothing in it can run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.run.checkpoint import MANIFEST, STATE, WEIGHTS, Checkpoint, Checkpoints, find
from maniple.run.folder import Names, RunFolder

ARRAYS = {"w": np.arange(6.0).reshape(2, 3), "n": np.array(7), "flag": np.array([True])}
STATE_TREE = {"net": ARRAYS}


@pytest.fixture
def checkpoints(tmp_path):
    """An empty folder."""
    return Checkpoints(tmp_path / "checkpoints", keep=2)


def test_what_is_saved_comes_back(checkpoints):
    """Arrays with their shapes and types, and the state."""
    saved = checkpoints.save(1200, {**STATE_TREE, "steps": 1200, "rng": {"a": 2**100}})
    assert saved.step == 1200 and saved.complaint() is None
    found = checkpoints.latest()
    state = found.state()
    for name, array in ARRAYS.items():
        assert np.array_equal(state["net"][name], array)
        assert state["net"][name].shape == array.shape
        assert state["net"][name].dtype == array.dtype
    assert state["steps"] == 1200 and state["rng"] == {"a": 2**100}


@pytest.mark.parametrize("what", ["cut", "changed", "gone", "no manifest", "bad manifest"])
def test_a_torn_checkpoint_is_never_loaded(checkpoints, what):
    """The one before it is, and who names the torn one is told."""
    checkpoints.save(100, STATE_TREE)
    torn = checkpoints.save(200, STATE_TREE).path
    weights = torn / WEIGHTS
    if what == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif what == "changed":
        weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    elif what == "gone":
        (torn / STATE).unlink()
    elif what == "no manifest":
        (torn / MANIFEST).unlink()
    else:
        (torn / MANIFEST).write_text("{")
    assert checkpoints.latest().step == 100
    assert find(checkpoints.folder.parent).step == 100
    with pytest.raises(BadConfig, match="torn"):
        find(torn)


def test_files_elsewhere_belong_to_it(checkpoints, tmp_path):
    """A replay file that is missing makes the checkpoint torn."""
    piece = tmp_path / "replay" / "000.safetensors"
    piece.parent.mkdir()
    piece.write_bytes(b"frames")
    saved = checkpoints.save(10, STATE_TREE, write_files=lambda: [piece])
    assert saved.files() == [piece] and saved.complaint() is None
    piece.unlink()
    assert "missing" in (saved.complaint() or "")


def test_only_the_newest_and_the_best_stay(checkpoints):
    """Old ones go; the best is not among the newest."""
    for step in (1, 2, 3, 4):
        checkpoints.save(step, STATE_TREE)
    checkpoints.save(2, {**STATE_TREE, "success": 0.9}, kind="best")
    checkpoints.save(4, {**STATE_TREE, "success": 1.0}, kind="best")
    names = sorted(p.name for p in checkpoints.folder.iterdir())
    assert names == ["best-000000004", "step-000000003", "step-000000004"]


def test_a_write_that_fails_leaves_the_old_one(checkpoints, monkeypatch):
    """A full disk is told in one line."""
    checkpoints.save(1, STATE_TREE)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("maniple.run.checkpoint.write_arrays", full)
    with pytest.raises(BadConfig, match="No space left"):
        checkpoints.save(2, STATE_TREE)
    assert checkpoints.latest().step == 1
    assert not list(checkpoints.folder.glob(".part*"))


def test_a_missing_place_is_named(tmp_path):
    """No such folder; a folder without checkpoints."""
    with pytest.raises(BadConfig, match="no checkpoint at"):
        find(tmp_path / "nowhere")
    with pytest.raises(BadConfig, match="no whole checkpoint"):
        find(tmp_path)


def test_the_manifest_is_plain(checkpoints):
    """Sizes and hashes, for people too."""
    saved = checkpoints.save(5, STATE_TREE)
    entries = json.loads((saved.path / MANIFEST).read_text())
    assert set(entries) == {WEIGHTS, STATE}
    assert Checkpoint(saved.path).complaint() is None


def test_an_older_layout_is_refused_in_words(checkpoints):
    """Training does not go on from numbers that mean something else today."""
    saved = checkpoints.save(5, STATE_TREE)
    (saved.path / STATE).write_text(json.dumps({"steps": 5, "course": {}}))
    with pytest.raises(BadConfig, match="another version of maniple"):
        Checkpoint(saved.path).state()


def test_a_phase_may_keep_the_names_that_its_users_know(tmp_path):
    """Checkpoints beside the metrics, numbered without zeros, in the order of their numbers."""
    names = Names(checkpoints=".", checkpoint="checkpoint-{step}", metrics="episode_metrics.jsonl")
    folder = RunFolder(tmp_path / "teacher_rl", names)
    kept = Checkpoints(folder.checkpoints, keep=2, names=names)
    for step in (50, 900, 1000):
        kept.save(step, STATE_TREE)
    assert sorted(p.name for p in folder.path.iterdir()) == ["checkpoint-1000", "checkpoint-900"]
    assert kept.latest().step == 1000
    assert folder.metrics.name == "episode_metrics.jsonl"
