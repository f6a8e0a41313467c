"""Ranks under torchrun stop together, save their own parts, and resume to the same numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
QUIET = {**os.environ, "OMP_NUM_THREADS": "1"}
WORDS = {
    "sac": ["--num-envs", "4", "--max-steps", "1200", "--random-steps", "100", "--training-starts",
            "100", "--batch-size", "16", "--eval-n-trajs", "5", "--eval-period", "400",
            "--log-period", "100", "--checkpoint-period", "100"],
    "drq": ["--num-envs", "2", "--max-steps", "200", "--random-steps", "40", "--training-starts",
            "40", "--batch-size", "8", "--eval-n-trajs", "3", "--eval-period", "100",
            "--log-period", "20", "--checkpoint-period", "20", "--demos", "2",
            "--env.image-size", "32", "32", "--agent.eye.width", "8"],
    "bc": ["--max-updates", "400", "--demos", "4", "--eval-n-trajs", "5", "--log-period", "50",
           "--checkpoint-period", "50", "--batch-size", "16", "--eval-period", "200"],
}  # fmt: skip


def command(algorithm: str, folder: Path, *more: str, ranks: int = 2) -> list[str]:
    """A training under torchrun."""
    words = ["-m", "maniple", "train", algorithm, *WORDS[algorithm], "--run-dir", str(folder)]
    return [*TORCHRUN, str(ranks), *words, "--json", *more]


def run(*args, **options) -> subprocess.CompletedProcess:
    """Run one to its end, whatever that is."""
    return subprocess.run(
        command(*args, **options), capture_output=True, text=True, timeout=300, env=QUIET
    )


def metrics(folder: Path) -> list[dict]:
    """Everything but the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("clock/")} for line in lines]


def parameters(folder: Path, rank: int) -> dict[str, np.ndarray]:
    """What one rank stored of its agent in the newest checkpoint."""
    newest = sorted((folder / "checkpoints").glob("step-*"))[-1]
    name = "weights.safetensors" if rank == 0 else f"weights.rank{rank}.safetensors"
    return {k: v for k, v in load_file(newest / name).items() if k.startswith("learner.agent.")}


def check_ranks(folder: Path) -> None:
    """Equal weights and optimisers, different noise."""
    one, two = parameters(folder, 0), parameters(folder, 1)
    own = {name for name in one if name.endswith((".generator", ".rng"))}
    assert one.keys() == two.keys() and own
    for name in one.keys() - own:
        assert np.array_equal(one[name], two[name]), name
    assert any(not np.array_equal(one[name], two[name]) for name in own), "the same noise"


@pytest.mark.slow  # Half a minute; make test has the ranks of the phases and of shared gradients.
def test_success_ends_both_ranks_and_both_go_on(tmp_path):
    """The first evaluation ends the run at 0 %; another number of ranks is refused."""
    folder = tmp_path / "run"
    done = run("sac", folder, "--stop-at-success", "0.0")
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["stopped_by"] == "success" and answer["steps"] == 400
    check_ranks(folder)
    whole = tmp_path / "whole"
    refused = subprocess.run(
        [sys.executable, "-m", "maniple", "train", "sac", *WORDS["sac"], "--run-dir", str(folder),
         "--resume"], capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert refused.returncode == 2 and "written by 2 ranks" in refused.stderr
    assert run("sac", folder, "--resume", "--stop-at-success", "None").returncode == 0
    assert run("sac", whole).returncode == 0
    last = lambda path: metrics(path)[-1]  # noqa: E731
    assert last(folder) == last(whole)
    for name, array in parameters(whole, 1).items():
        assert np.array_equal(parameters(folder, 1)[name], array), name


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", WORDS)
def test_time_ends_both_ranks(tmp_path, algorithm):
    """A checkpoint is there, and the run goes on from it."""
    folder = tmp_path / "run"
    done = run(algorithm, folder, "--max-minutes", "0.03")
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["stopped_by"] == "minutes" and answer["steps"] > 0
    check_ranks(folder)
    done = run(algorithm, folder, "--resume")
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", WORDS)
@pytest.mark.parametrize("victim", ["one", "both", "agent", "SIGTERM", "SIGINT", "one SIGTERM"])
def test_whoever_is_killed_the_run_goes_on_exactly(tmp_path, algorithm, victim):
    """No rank waits for one that left; resumed, every number is that of the uninterrupted run."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(algorithm, whole).returncode == 0
    agent = subprocess.Popen(
        command(algorithm, broken), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=QUIET
    )
    while not list(broken.glob("checkpoints/step-*/manifest.json")):
        assert agent.poll() is None
        time.sleep(0.02)
    ranks = psutil.Process(agent.pid).children()
    assert len(ranks) == 2
    hit = {"one": ranks[1:], "both": ranks, "one SIGTERM": ranks[1:]}.get(victim, [agent])
    number = getattr(signal, victim.split()[-1], signal.SIGKILL)
    for process in hit:
        process.send_signal(number)
    agent.communicate(timeout=60)
    psutil.wait_procs(ranks, timeout=10)
    assert not [p for p in ranks if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    done = run(algorithm, broken, "--resume")
    assert done.returncode == 0, done.stderr[-2000:]
    check_ranks(broken)
    for name, array in parameters(whole, 1).items():
        assert np.array_equal(parameters(broken, 1)[name], array), name
    if number == signal.SIGKILL:
        assert metrics(broken) == metrics(whole)
