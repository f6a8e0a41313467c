"""A file that is being written is complete or not there."""

import os
from pathlib import Path

import pytest

from maniple.core import atomic


def test_writes_and_replaces(tmp_path):
    path = tmp_path / "new" / "file.txt"
    atomic.write_text(path, "é1")
    atomic.write_bytes(path, b"2")
    assert path.read_bytes() == b"2"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("error", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    with pytest.raises(type(error)), atomic.replacing(path) as part:
        part.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_data_then_name_are_brought_to_the_disk(tmp_path, monkeypatch):
    path, seen = tmp_path / "file", []

    def fsync(fd):
        seen.append((str(Path(f"/proc/self/fd/{fd}").readlink()), path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    atomic.write_text(path, "x")
    assert seen == [(f"{path}.part", False), (str(tmp_path), True)]
