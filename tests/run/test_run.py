"""Run folders, metrics, clocks."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.run.folder import RunFolder
from maniple.run.log import Log, read_lines
from maniple.run.stop import Stop
from maniple.run.tree import split, unsplit
from maniple.run.when import Every, Ratio


@dataclass(frozen=True)
class Settings:
    """Some settings."""

    name: str = "x"
    sizes: tuple[int, ...] = (1, 2)


def test_a_folder_says_what_was_run(tmp_path):
    """Settings and versions can be read back, and a second run is refused."""
    folder = RunFolder(tmp_path / "run")
    folder.create(Settings())
    assert folder.config() == {"name": "x", "sizes": [1, 2]}
    assert "mujoco" in (tmp_path / "run" / "versions.yaml").read_text()
    with pytest.raises(BadConfig, match="--resume"):
        RunFolder(tmp_path / "run").create(Settings())


def test_settings_cannot_run_code(tmp_path):
    """A config that asks for a Python object is refused."""
    (tmp_path / "config.yaml").write_text("a: !!python/object/apply:os.system ['true']")
    with pytest.raises(BadConfig, match="not readable"):
        RunFolder(tmp_path).config()
    (tmp_path / "config.yaml").write_text("- 1")
    with pytest.raises(BadConfig, match="table of names"):
        RunFolder(tmp_path).config()


def test_metrics_after_the_checkpoint_come_again(tmp_path):
    """On resume, lines beyond the checkpoint go; a torn last line does no harm."""
    log = Log(RunFolder(tmp_path))
    for step in (10, 20, 30):
        log.write(step, {"loss": step / 7, "bad": float("nan")})
    log.close()
    path = tmp_path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 40, "lo')
    log = Log(RunFolder(tmp_path), resume_step=20)
    log.write(30, {"loss": 1.0})
    log.close()
    lines = read_lines(path)
    assert [line["step"] for line in lines] == [10, 20, 30]
    assert lines[0]["loss"] == 10 / 7 and lines[0]["bad"] is None
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_every_and_ratio():
    """Due once per period; fractions of updates are kept."""
    every = Every(100)
    assert [n for n in range(0, 500, 30) if every(n)] == [120, 210, 300, 420]
    assert not Every(0)(10**9)
    ratio = Ratio(0.125)
    assert sum(ratio(3) for _ in range(80)) == 30


def test_a_run_stops_for_one_reason():
    """The weightiest one that holds."""
    stop = Stop(max_steps=10, max_updates=5)
    assert stop.reason(9, 4) == ""
    assert stop.reason(10, 4) == "steps" and stop.reason(3, 5) == "updates"
    stop.succeed()
    assert stop.reason(10, 5) == "success"
    stop.ask()
    assert stop.reason(0) == "asked"
    late = Stop(max_minutes=-1)
    assert late.reason(0) == "", "the clock starts with the run"
    late.begin()
    assert late.reason(0) == "minutes"


def test_trees_come_back(tmp_path):
    """Nested dicts, lists, arrays and numbers."""
    tree = {"a": [np.arange(3), {"b": 2, "c": None}], "d": {"e": np.float64(0.1)}}
    arrays: dict = {}
    rest = json.loads(json.dumps(split(tree, "t", arrays)))
    back = unsplit(rest, arrays)
    assert np.array_equal(back["a"][0], np.arange(3))
    assert back["a"][1] == {"b": 2, "c": None} and back["d"]["e"] == 0.1


def test_weights_and_biases_get_the_same_numbers(tmp_path, monkeypatch):
    """Kept in the run folder where it may not send."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    folder = RunFolder(tmp_path / "run")
    log = Log(folder, settings={"wandb": "arms", "seed": 3})
    log.write(10, {"loss": 0.5})
    log.close()
    assert read_lines(folder.metrics)[-1]["loss"] == 0.5
    (stored,) = (tmp_path / "run/wandb").glob("offline-run-*/*.wandb")
    assert stored.stat().st_size > 0
