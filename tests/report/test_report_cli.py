"""maniple report, as a user types it: trained runs, one page, nothing loaded from elsewhere."""

import json
import re

import pytest

from maniple.report.runs_page import CURVES, ReportedRun, _curve

SMALL = (
    "--num_envs 4 --max_steps 400 --random_steps 100 --training_starts 100 --batch_size 32 "
    "--eval_n_trajs 4 --eval_period 200 --log_period 200"
)


@pytest.fixture
def runs(tmp_path, inside):
    paths = [tmp_path / f"run{seed}" for seed in range(2)]
    for seed, path in enumerate(paths):
        inside("train", "sac", *SMALL.split(), "--seed", seed, "--run-dir", path)
    return paths


def test_a_page_about_two_runs(runs, tmp_path, inside):
    out = tmp_path / "deep/report.html"
    words = ["--episodes", "8", "--perturb", "light,start=0.05", "--out", out, "--json"]
    answer = json.loads(inside("report", *runs, *words).out.splitlines()[-1])
    assert {row["conditions"] for row in answer["comparisons"]} == {
        "clean", "light 0.4", "start 0.05",
    }  # fmt: skip
    assert {row["verdict"] for row in answer["comparisons"]} <= {
        "IMPROVED", "REGRESSED", "CANNOT TELL",
    }  # fmt: skip
    text = out.read_text()
    assert "run1" in text and "95 %" in text and "<svg" in text and "median of 2" in text
    assert not re.search(r'(src|href)="(?!data:)', text), "the page loads something"
    assert re.search(r"<td>seed</td><td>0</td><td>1</td>", text)


def test_returns_and_speed_are_drawn(runs, tmp_path, inside):
    """Speed is that of training: an evaluation in between does not make it look like nothing."""
    out = tmp_path / "r.html"
    inside("report", runs[0], "--episodes", "0", "--out", out)
    assert all(f"<figcaption>{title}</figcaption>" in out.read_text() for title in CURVES)
    for metric in CURVES.values():
        assert len(_curve(ReportedRun.of(runs[0]), metric)) > 1
    assert all(speed > 0 for _, speed in _curve(ReportedRun.of(runs[0]), "clock/steps_per_s"))


def test_without_playing(runs, tmp_path, inside):
    out = tmp_path / "r.html"
    assert "look at" in inside("report", runs[0], "--episodes", "0", "--out", out).out
    assert "How good they are" not in out.read_text()


def test_mistakes_are_told(tmp_path, inside):
    assert "no run folder" in inside("report", tmp_path, code=2).err
    (tmp_path / "config.yaml").write_text("task: a\n")
    assert "nothing to report" in inside("report", tmp_path, code=2).err


def test_unknown_perturbations_are_told(runs, inside):
    said = inside("report", runs[0], "--perturb", "lights", "--episodes", "2", code=2).err
    assert "Did you mean light" in said
    said = inside("report", runs[0], "--perturb", "light=much", "--episodes", "2", code=2).err
    assert "give a number" in said
    said = inside("report", runs[0], "--perturb", "light=nan", "--episodes", "2", code=2).err
    assert "a number, 0 or larger" in said
    assert "named twice" in inside("report", runs[0], runs[0], code=2).err
