"""Under torchrun: per-rank environments, distinct seeds, one voice, nothing left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
QUIET = {**os.environ, "OMP_NUM_THREADS": "1"}


def test_the_example():
    words = [*TORCHRUN, str(ROOT / "examples/07_torchrun.py"), "--num-envs", "3", "--steps", "20"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=QUIET)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert lines[0] == "2 ranks, 6 environments"
    targets = lines[2].split(":")[1].split()
    assert len(set(targets)) == 2, "the ranks have different seeds"
    assert len(lines) == 3, "rank 0 alone prints"


def test_bench_under_torchrun():
    words = [*TORCHRUN, "-m", "maniple", "bench", "--num-envs", "2", "--steps", "10", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=QUIET)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) == 1
    assert json.loads(done.stdout)["num_envs"] == 2


def test_killing_the_agent_leaves_nothing():
    """torchrun's ranks would live on as orphans; ours end with it."""
    words = [*TORCHRUN, str(ROOT / "examples/07_torchrun.py"), "--steps", "1000000"]
    agent = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=QUIET)
    try:
        until = time.monotonic() + 60
        while len(family := psutil.Process(agent.pid).children(recursive=True)) < 6:
            assert time.monotonic() < until, family
            time.sleep(0.1)
        time.sleep(1.0)
        family = psutil.Process(agent.pid).children(recursive=True)
        assert len(family) >= 6, "two ranks, two zygotes, at least two workers"
    finally:
        os.kill(agent.pid, signal.SIGKILL)
        agent.wait()
    _, alive = psutil.wait_procs(family, timeout=1.0)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
