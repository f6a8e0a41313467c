"""A checkpoint is whole or not there, and nothing in it can run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.run.checkpoint import MANIFEST, STATE, WEIGHTS, Checkpoint, Checkpoints, find

ARRAYS = {"w": np.arange(6.0).reshape(2, 3), "n": np.array(7), "flag": np.array([True])}


@pytest.fixture
def shelf(tmp_path):
    """An empty shelf."""
    return Checkpoints(tmp_path / "checkpoints", keep=2)


def test_what_is_saved_comes_back(shelf):
    """Arrays with their shapes and types, and the state."""
    saved = shelf.save(1200, ARRAYS, {"steps": 1200, "rng": {"a": 2**100}})
    assert saved.step == 1200 and saved.complaint() is None
    found = shelf.latest()
    for name, array in ARRAYS.items():
        assert np.array_equal(found.arrays()[name], array)
        assert found.arrays()[name].shape == array.shape
        assert found.arrays()[name].dtype == array.dtype
    assert found.state() == {"steps": 1200, "rng": {"a": 2**100}}


@pytest.mark.parametrize("what", ["cut", "changed", "gone", "no manifest", "bad manifest"])
def test_a_torn_checkpoint_is_never_loaded(shelf, what):
    """The one before it is, and who names the torn one is told."""
    shelf.save(100, ARRAYS, {})
    torn = shelf.save(200, ARRAYS, {}).path
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
    assert shelf.latest().step == 100
    assert find(shelf.folder.parent).step == 100
    with pytest.raises(BadConfig, match="torn"):
        find(torn)


def test_files_elsewhere_belong_to_it(shelf, tmp_path):
    """A replay file that is missing makes the checkpoint torn."""
    piece = tmp_path / "replay" / "000.safetensors"
    piece.parent.mkdir()
    piece.write_bytes(b"frames")
    saved = shelf.save(10, ARRAYS, {}, files=[piece])
    assert saved.files() == [piece] and saved.complaint() is None
    piece.unlink()
    assert "missing" in (saved.complaint() or "")


def test_only_the_newest_and_the_best_stay(shelf):
    """Old ones go; the best is not among the newest."""
    for step in (1, 2, 3, 4):
        shelf.save(step, ARRAYS, {})
    shelf.save(2, ARRAYS, {"success": 0.9}, kind="best", keep=1)
    shelf.save(4, ARRAYS, {"success": 1.0}, kind="best", keep=1)
    names = sorted(p.name for p in shelf.folder.iterdir())
    assert names == ["best-000000004", "step-000000003", "step-000000004"]


def test_a_write_that_fails_leaves_the_old_one(shelf, monkeypatch):
    """A full disk is told in one line."""
    shelf.save(1, ARRAYS, {})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("maniple.run.checkpoint.write_arrays", full)
    with pytest.raises(BadConfig, match="No space left"):
        shelf.save(2, ARRAYS, {})
    assert shelf.latest().step == 1
    assert not list(shelf.folder.glob(".part*"))


def test_a_missing_place_is_named(tmp_path):
    """No such folder; a folder without checkpoints."""
    with pytest.raises(BadConfig, match="no checkpoint at"):
        find(tmp_path / "nowhere")
    with pytest.raises(BadConfig, match="no whole checkpoint"):
        find(tmp_path)


def test_the_manifest_is_plain(shelf):
    """Sizes and hashes, for people too."""
    saved = shelf.save(5, ARRAYS, {})
    entries = json.loads((saved.path / MANIFEST).read_text())
    assert set(entries) == {WEIGHTS, STATE}
    assert Checkpoint(saved.path).complaint() is None
