"""Ten consecutive runs check the laws on every task."""

import task_sample

from maniple.registry import TASKS


def test_every_task_comes_round_in_ten_runs(monkeypatch):
    for first in range(task_sample.SAMPLES):
        runs = [task_sample.sample(first + k) for k in range(task_sample.SAMPLES)]
        registered = {task for task in TASKS if not task.startswith("tests/")}
        assert registered <= {task for run in runs for task in run}
        assert max(len(run) for run in runs) <= 5


def test_a_sample_can_be_chosen(monkeypatch):
    monkeypatch.setenv(task_sample.VARIABLE, "3/10")
    assert task_sample.chosen() == task_sample.sample(2)
    monkeypatch.setenv(task_sample.VARIABLE, "OpenDrawer, so101/Reach-v0")
    assert task_sample.chosen() == ["panda/OpenDrawer-v0", "so101/Reach-v0"]
    monkeypatch.setenv(task_sample.VARIABLE, "all")
    assert task_sample.chosen() == sorted(TASKS)
