"""Training closes the loop, and goes on exactly after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from maniple.agents.drq import DrQConfig
from maniple.agents.eye import EyeConfig
from maniple.agents.sac import SACConfig
from maniple.core.errors import BadConfig
from maniple.envs.config import EnvConfig
from maniple.learn.config import TrainConfig, config_of
from maniple.learn.loop import train
from maniple.learn.policy import load_policy
from maniple.run.evaluation import wilson
from maniple.run.folder import RunFolder

TINY = TrainConfig.of(
    num_envs=4, max_steps=600, random_steps=100, training_starts=100, batch_size=32,
    log_period=100, eval_period=300, eval_n_trajs=4, checkpoint_period=200,
    torch_threads=1, agent=SACConfig(hidden=(32, 32)),
)  # fmt: skip
WORDS = [
    "--num-envs", "4", "--max-steps", "1600", "--random-steps", "200", "--training-starts", "200",
    "--log-period", "200", "--eval-period", "600", "--eval-n-trajs", "5", "--batch-size", "64",
    "--checkpoint-period", "400", "--torch-threads", "1", "--demos", "2", "--json",
]  # fmt: skip


def told(folder: Path) -> list[dict]:
    """Metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("clock/")} for line in lines]


def test_a_run_leaves_what_it_promises(tmp_path):
    """Metrics, checkpoints, settings; and the policy can be judged from them."""
    result = train(TINY, tmp_path / "run")
    assert result.steps == 600 and result.updates > 50
    lines = told(tmp_path / "run")
    assert {"critic_loss", "temperature", "replay", "success"} <= lines[-1].keys()
    assert config_of(RunFolder(tmp_path / "run").config()) == TINY
    policy = load_policy(tmp_path / "run")
    obs = {n: np.zeros((2, *s.shape), s.dtype) for n, s in policy.layout.items()}
    assert policy.act(obs).shape == (2, 4)


def test_overlap_and_serial_engine_learn_the_same(tmp_path):
    """Stepping beside the learner changes the speed, not one bit of the result."""
    train(TINY, tmp_path / "a")
    train(TINY.replace(overlap=False), tmp_path / "b")
    train(TINY.replace(engine="serial"), tmp_path / "c")
    assert told(tmp_path / "a") == told(tmp_path / "b") == told(tmp_path / "c")


def test_killed_and_resumed_equals_uninterrupted(tmp_path):
    """SIGKILL in the middle, at whatever moment: the metrics are the same to the bit."""
    command = [sys.executable, "-m", "maniple", "train", "sac", *WORDS]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*command, "--run-dir", str(tmp_path / "whole")], check=True, **quiet)
    broken = tmp_path / "broken"
    victim = subprocess.Popen([*command, "--run-dir", str(broken)], **quiet)
    while not (broken / "metrics.jsonl").exists() or len(told_safely(broken)) < 6:
        assert victim.poll() is None
        time.sleep(0.02)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    subprocess.run([*command, "--run-dir", str(broken), "--resume"], check=True, **quiet)
    assert told(broken) == told(tmp_path / "whole")


def told_safely(folder: Path) -> list[str]:
    """Lines that are there by now."""
    return (folder / "metrics.jsonl").read_text().splitlines()


def test_settings_cannot_change_in_the_middle(tmp_path):
    """A resumed run is the same run; a used folder is not overwritten."""
    train(TINY.replace(max_steps=200, eval_n_trajs=0), tmp_path / "run")
    with pytest.raises(BadConfig, match="holds a run already"):
        train(TINY, tmp_path / "run")
    with pytest.raises(BadConfig, match="begun with batch_size = 32"):
        train(TINY.replace(batch_size=64), tmp_path / "run", resume=True)
    result = train(TINY.replace(max_steps=400, eval_n_trajs=0), tmp_path / "run", resume=True)
    assert result.steps == 400


def test_pictures_and_the_process_engine(tmp_path):
    """DrQ trains on camera images with worker processes, and can be resumed."""
    config = TINY.replace(
        num_envs=2, max_steps=120, batch_size=8, random_steps=40, training_starts=40,
        eval_period=0, eval_n_trajs=2, checkpoint_period=60, demos=1, replay_buffer_capacity=2_000,
        env=EnvConfig(cameras=("front",), image_size=(32, 32)),
        agent=DrQConfig(eye=EyeConfig(width=8), hidden=(16,), frame_stack=2),
    )  # fmt: skip
    train(config, tmp_path / "run")
    result = train(config.replace(max_steps=160), tmp_path / "run", resume=True)
    assert result.steps == 160 and result.updates > 10


def test_a_gymnasium_task_can_be_trained(tmp_path):
    """Environments that are not ours, without success and without a state to store."""
    config = TINY.replace(task="Pendulum-v1", max_steps=300, engine="native")
    result = train(config, tmp_path / "run")
    assert result.evaluation is not None and result.evaluation.successes is None
    train(config.replace(max_steps=400), tmp_path / "run", resume=True)


def test_wilson_is_right_at_the_edges():
    """Against values worked out with the formula by hand."""
    low, high = wilson(90, 100)
    assert low == pytest.approx(0.8256, abs=1e-3) and high == pytest.approx(0.9448, abs=1e-3)
    assert wilson(0, 100)[0] == 0.0 and wilson(0, 100)[1] == pytest.approx(0.037, abs=1e-3)
    assert wilson(100, 100)[1] == 1.0


def test_an_arm_that_takes_poses_can_be_trained(tmp_path):
    """Its space has bounds, although any finite pose is accepted and reported as invalid."""
    config = TINY.replace(task="OpenDrawer", num_envs=2, max_steps=40, random_steps=20,
                     training_starts=20, batch_size=8, eval_n_trajs=0)  # fmt: skip
    assert train(config, tmp_path / "run").updates > 0
