"""Following a run reads what is new, and begins anew where the run does."""

import json

from maniple.run.folder import RunFolder
from maniple.view.runs import MetricsFollower


def report(step, value):
    return json.dumps({"step": step, "success": value, "word": "no number"}) + "\n"


def test_only_what_is_new_is_read(tmp_path, monkeypatch):
    file = RunFolder(tmp_path).metrics
    follower = MetricsFollower(tmp_path)
    assert follower.look() == {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(report(k, k / 100) for k in range(100)))
    assert len(follower.look()["success"]) == 100
    lines = []
    read = __import__("maniple.view.runs", fromlist=["read_line"]).read_line
    monkeypatch.setattr(
        "maniple.view.runs.read_line", lambda line: lines.append(line) or read(line)
    )
    with file.open("a") as out:
        out.write(report(100, 1.0) + report(101, 1.0)[:9])
    assert follower.look()["success"][-1] == (100.0, 1.0) and len(lines) == 1
    with file.open("a") as out:
        out.write(report(101, 1.0)[9:] + "rubbish\n")
    assert follower.look()["success"][-1] == (101.0, 1.0)
    assert len(follower.look()["success"]) == 102 and len(lines) == 3


def test_a_run_that_goes_on_from_a_checkpoint_is_read_anew(tmp_path):
    file = RunFolder(tmp_path).metrics
    file.write_text("".join(report(k, 0.0) for k in range(10)))
    follower = MetricsFollower(tmp_path)
    assert len(follower.look()["success"]) == 10
    # Shorter, and longer than before but with other lines.
    file.write_text("".join(report(k, 0.0) for k in range(4)))
    assert [step for step, _ in follower.look()["success"]] == [0, 1, 2, 3]
    file.write_text("".join(report(k, 0.5) for k in range(30)))
    assert len(follower.look()["success"]) == 30
    assert {value for _, value in follower.look()["success"]} == {0.5}
