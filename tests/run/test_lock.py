"""One process at a time trains in a run folder, and a kill leaves nothing to clean."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from maniple.core.errors import BadConfig
from maniple.run.lock import RunLock

HOLD = "import sys, time; from pathlib import Path; from maniple.run.lock import RunLock\n"
HOLD += "lock = RunLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"


def test_the_second_is_refused_and_told_who_holds_it(tmp_path):
    lock = RunLock(tmp_path)
    with pytest.raises(BadConfig, match=f"in use by process {os.getpid()} since 2"):
        RunLock(tmp_path)
    lock.close()
    lock.close()
    RunLock(tmp_path).close()


def test_a_killed_holder_leaves_nothing_to_clean(tmp_path):
    words = [sys.executable, "-c", HOLD, str(tmp_path)]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(BadConfig, match=f"process {holder.pid}"):
        RunLock(tmp_path)
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    RunLock(tmp_path).close()


def test_two_trainings_in_one_folder(tmp_path):
    """The second one ends with a line, and the first one's metrics stay as they are."""
    run = tmp_path / "run"
    words = [sys.executable, "-m", "maniple", "train", "sac", "--num-envs", "4", "--eval-n-trajs",
             "0", "--log-period", "200", "--max-steps", "10000000", "--run-dir", str(run)]  # fmt: skip
    first = subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").read_text():
            assert first.poll() is None
        second = subprocess.run([*words, "--resume"], capture_output=True, text=True)
        assert second.returncode == 2, second.stderr
        assert f"in use by process {first.pid} since" in second.stderr
        assert '"step": 200,' in (run / "metrics.jsonl").read_text().splitlines()[0]
    finally:
        first.kill()
        first.wait()
