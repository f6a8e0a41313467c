"""A writer killed at any moment leaves what check reports and repair makes whole."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made import assert_same, episode

from maniple.core.errors import BadConfig, ClosedError, ManipleError
from maniple.data.demos import load
from maniple.data.lerobot.check import check
from maniple.data.lerobot.repair import repair
from maniple.data.lerobot.write import DatasetWriter


class Crash(Exception):
    """The moment of the kill."""


def write(root, seeds, pictures=True):
    with DatasetWriter(root, fps=25) as writer:
        for seed in seeds:
            writer.add(episode(seed, steps=4, pictures=pictures))


def crash_at(monkeypatch, moment, error=Crash):
    """Stop at the n-th time that something reaches the disk: a file, or its new name."""
    count = [0]
    sync = os.fsync

    def fsync(descriptor):
        count[0] += 1
        if count[0] == moment:
            raise error
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    if error is Crash:  # A killed process tidies nothing up.
        monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    return count


def test_every_moment_of_an_episode(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        count = crash_at(patch, -1)
        write(tmp_path / "whole", [0])
        first = count[0]
        write(tmp_path / "whole", [1])
        moments = count[0] - first
    assert moments >= 12  # Two films, a table, facts, stats, info: each a file and a name.
    kept = set()
    for moment in range(1, moments + 1):
        root = shutil.copytree(tmp_path / "whole", tmp_path / str(moment))
        with monkeypatch.context() as patch, pytest.raises(Crash):
            crash_at(patch, moment)
            write(root, [2])
        found = check(root)
        if moment < moments:
            assert not found["ok"] and found["faults"], moment
            with (
                pytest.raises(BadConfig, match="repair")
                if found["episodes"] > 2
                else contextlib.nullcontext()
            ):
                write(root, [])
        mended = repair(root)
        assert mended["ok"] and check(root)["ok"], (moment, mended)
        episodes = load(root)
        assert len(episodes) == mended["episodes"] in (2, 3)
        for seed, e in enumerate(episodes):
            assert_same(episode(seed, steps=4), e)
        kept.add(len(episodes))
    # Going on works, and takes no number twice.
    write(root, [7])
    assert check(root)["ok"] and load(root)[-1].seed == 7
    assert kept == {2, 3}


def test_every_moment_of_the_first_episode(tmp_path, monkeypatch):
    for moment in range(1, 14):
        root = tmp_path / str(moment)
        with monkeypatch.context() as patch, pytest.raises(Crash):
            crash_at(patch, moment)
            write(root, [0])
        mended = repair(root)
        assert mended["ok"] and mended["episodes"] in (0, 1)
        assert (
            len(load(root)) == 1 if mended["episodes"] else not (root / "meta/info.json").exists()
        )
        if mended["episodes"]:
            assert check(root)["ok"]


def test_every_moment_of_a_repair(tmp_path, monkeypatch):
    """The second of four is lost, so that all that follow get new numbers."""
    write(tmp_path / "torn", [0, 1, 2, 3], pictures=False)
    (tmp_path / "torn/data/chunk-000/file-001.parquet").write_bytes(b"PAR1 and no more")
    for moment in range(1, 30):
        root = shutil.copytree(tmp_path / "torn", tmp_path / str(moment))
        with monkeypatch.context() as patch:
            count = crash_at(patch, moment)
            with contextlib.suppress(Crash):
                repair(root)
        mended = repair(root)
        assert mended["ok"] and check(root)["ok"]
        assert [e.seed for e in load(root)] == [0, 2, 3]
        for seed, e in zip((0, 2, 3), load(root), strict=True):
            assert_same(episode(seed, steps=4, pictures=False), e)
        if count[0] < moment:
            break
    else:
        raise AssertionError("the repair has more moments than were tried")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda root: next((root / "videos").rglob("file-001.mp4")).unlink(), "it is missing"),
        (lambda root: _cut(next((root / "videos").rglob("file-001.mp4"))), "it cannot be read"),
        (lambda root: _cut(root / "data/chunk-000/file-001.parquet"), "it cannot be read"),
        (lambda root: (root / "data/chunk-000/file-001.parquet").unlink(), "its table is missing"),
        (lambda root: _shuffle(root / "data/chunk-000/file-001.parquet"), "does not follow"),
        (lambda root: (root / "meta/info.json").unlink(), "it is missing"),
        (lambda root: (root / "meta/info.json").write_text("{"), "cannot be read"),
        (lambda root: (root / "meta/tasks.parquet").unlink(), "cannot be read"),
        (lambda root: _cut(root / "meta/episodes/chunk-000/file-001.parquet"), "cannot be read"),
        (lambda root: (root / "data/x.parquet.part").write_text("x"), "was being written"),
    ],
)
def test_what_is_wrong_is_said_and_mended(tmp_path, spoil, says):
    write(tmp_path, [0, 1, 2])
    spoil(tmp_path)
    found = check(tmp_path)
    assert not found["ok"] and any(says in fault["what"] for fault in found["faults"]), found
    mended = repair(tmp_path)
    assert mended["ok"] and mended["episodes"] in (2, 3)
    assert check(tmp_path)["ok"] and len(load(tmp_path)) == mended["episodes"]
    for file in mended["set_aside"]:
        assert (tmp_path / "torn" / file).exists()


def _cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _shuffle(path):
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    states = table["observation.state"].to_pylist()
    key = table.schema.get_field_index("observation.state")
    import pyarrow as pa

    column = pa.array(states[::-1], table.schema.field(key).type)
    pq.write_table(table.set_column(key, table.schema.field(key), column), path)


def test_a_whole_dataset_is_left_alone(tmp_path):
    write(tmp_path, [0, 1])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert repair(tmp_path) == {**check(tmp_path), "set_aside": []}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_full_disk_is_told_and_the_next_episode_goes_on(tmp_path, monkeypatch):
    with DatasetWriter(tmp_path, fps=25) as writer:
        writer.add(episode(0, steps=4))
        for moment in range(1, 8):
            with monkeypatch.context() as patch:
                crash_at(patch, moment, OSError(28, "No space left on device"))
                with pytest.raises(ManipleError, match=r"No space left.*maniple data repair"):
                    writer.add(episode(1, steps=4))
        writer.add(episode(2, steps=4))
    assert [e.seed for e in load(tmp_path)] == [0, 2]
    assert repair(tmp_path)["episodes"] == 2 and check(tmp_path)["ok"]
    with pytest.raises(ClosedError):
        writer.add(episode(3))


def test_no_dataset_is_told(tmp_path):
    for do in (check, repair):
        with pytest.raises(BadConfig, match="is no dataset"):
            do(tmp_path)


def test_kill_9(tmp_path):
    """A real process, killed at random moments while it writes films and tables."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from made import episode\n"
        "from maniple.data.lerobot.write import DatasetWriter\n"
        "writer = DatasetWriter(sys.argv[1], 25)\n"
        "for seed in range(1000):\n"
        "    writer.add(episode(seed, steps=4))\n"
        "    print(seed, flush=True)\n"
    )
    rng = np.random.default_rng(0)
    torn = 0
    for trial in range(6):
        root = tmp_path / str(trial)
        words = [sys.executable, "-c", code, str(root), str(Path(__file__).parent)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        said, _ = process.communicate()
        promised = 1 + len(said.split())
        torn += not check(root)["ok"]
        assert repair(root)["ok"] and check(root)["ok"]
        episodes = load(root)
        assert promised <= len(episodes) <= promised + 1
        for seed, e in enumerate(episodes):
            assert_same(episode(seed, steps=4), e)
    assert torn, "no kill hit a moment in which something was being written"
