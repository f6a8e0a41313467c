"""Files that anybody may have written are plain data or one clear line, and never a hang."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maniple.core.checked_file import BadFile, read_bytes, read_json, read_yaml_table
from maniple.core.errors import BadConfig
from maniple.data.lerobot import paths
from maniple.envs.rlbench.safe_pickle import read_pickle
from maniple.run.checkpoint import MANIFEST, STATE, WEIGHTS, Checkpoint, Checkpoints, _entry
from maniple.run.log import read_lines

FUZZ = Path(__file__).with_name("fuzz_files.py")
KINDS = ("checkpoint", "settings", "metrics", "dataset", "pickles")


def fuzz(kind, count, seed):
    words = [sys.executable, str(FUZZ), kind, str(count), str(seed)]
    return subprocess.run(words, capture_output=True, text=True, timeout=3000)


@pytest.mark.parametrize("kind", KINDS)
def test_changed_files_are_refused_in_one_line(kind):
    done = fuzz(kind, 150, os.getpid())
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_thousand_changed_files(kind):
    done = fuzz(kind, 20_000, 1)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.fixture
def saved(tmp_path):
    """A whole checkpoint."""
    return Checkpoints(tmp_path / "checkpoints").save(10, {"w": np.arange(3.0), "steps": 1}).path


def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadFile, match="a pipe, not a file"):
        read_bytes(tmp_path / "pipe", 100)


def test_a_folder_and_a_device_are_named(tmp_path):
    with pytest.raises(BadFile, match="a folder, not a file"):
        read_json(tmp_path)
    with pytest.raises(BadFile, match="a device, not a file"):
        read_bytes("/dev/zero", 100)


def test_a_large_file_is_not_read(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(BadFile, match=r"1,000,000,000,000 bytes"):
        read_json(tmp_path / "large")


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "secret").write_text("x")
    (tmp_path / "run/link").symlink_to(tmp_path / "secret")
    with pytest.raises(BadFile, match="is not inside"):
        read_bytes(tmp_path / "run/link", 100, inside=tmp_path / "run")


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "\xff"])
def test_deep_and_broken_json(tmp_path, text):
    (tmp_path / "a.json").write_text(text, encoding="latin1")
    with pytest.raises(BadFile, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_an_alias_bomb_is_refused(tmp_path):
    lines = ["a0: &a0 [x, x]"] + [f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]" for k in range(1, 40)]
    (tmp_path / "a.yaml").write_text("\n".join(lines))
    with pytest.raises(BadFile, match=r"aliases \(\*a0\) are not read"):
        read_yaml_table(tmp_path / "a.yaml")


@pytest.mark.parametrize("name", ["/dev/zero", "../../../outside", "../../config.yaml"])
def test_a_manifest_cannot_name_files_elsewhere(saved, tmp_path, name):
    (tmp_path.parent / "outside").write_text("x")
    (saved / MANIFEST).write_text(json.dumps({name: {"bytes": 1, "sha256": "0"}}))
    assert Checkpoint(saved).complaint() is not None


def test_bad_arrays_under_a_manifest_that_fits(saved):
    (saved / WEIGHTS).write_bytes(b"\x08" + b"\0" * 7 + b"garbage!")
    entries = {file: _entry(saved / file) for file in (WEIGHTS, STATE)}
    (saved / MANIFEST).write_text(json.dumps(entries))
    found = Checkpoint(saved)
    assert found.complaint() is None
    with pytest.raises(BadConfig, match="not readable"):
        found.state()


def test_a_torn_best_checkpoint_does_not_end_a_run(tmp_path):
    there = Checkpoints(tmp_path / "checkpoints")
    best = there.save(5, {"w": np.ones(2)}, kind="best")
    (best.path / MANIFEST).write_text("{")
    assert [one.files() for one in there.whole()] == [[]]
    (tmp_path / "checkpoints/best-of-all").mkdir()
    assert there.latest("best") is None


def test_metrics_that_are_no_text(tmp_path):
    (tmp_path / "m.jsonl").write_bytes(b'{"step": 1}\n\xff\xfe\n[1]\n{"step": "x"}\n{"step": 2}\n{')
    assert [line["step"] for line in read_lines(tmp_path / "m.jsonl")] == [1, 2]


@pytest.mark.parametrize(
    "template", ["{chunk_index:999999999}", "/etc/passwd{file_index}", "../{chunk_index}", "{0}", 7]
)
def test_templates_of_file_names(tmp_path, template):
    with pytest.raises(BadFile):
        paths.filled(tmp_path, template, {"chunk_index": 0, "file_index": 0})


def test_a_pickle_of_tuples_in_tuples_ends():
    value = ()
    for _ in range(100):
        value = (value, value)
    data = pickle.dumps(value)
    assert len(data) < 1000
    assert len(read_pickle(data)) == 2
