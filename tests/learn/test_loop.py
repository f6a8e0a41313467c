"""Training closes the loop, and goes on exactly after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from maniple.agents.drq import DrQConfig
from maniple.agents.eye import EyeConfig
from maniple.agents.sac import SACConfig
from maniple.core.errors import BadConfig, UnknownName
from maniple.envs.config import EnvConfig
from maniple.learn.config import TrainConfig, config_of, preset
from maniple.learn.loop import train
from maniple.learn.policy import load_policy
from maniple.run.checkpoint import digest
from maniple.run.evaluation import FIRST_SEED, evaluate, wilson
from maniple.run.folder import RunFolder
from maniple.run.stop import Stop

TINY = TrainConfig.of(
    num_envs=4, max_steps=600, random_steps=100, training_starts=100, batch_size=32,
    log_period=100, eval_period=300, eval_n_trajs=4, checkpoint_period=200,
    torch_threads=1, agent=SACConfig(hidden=(32, 32)),
)  # fmt: skip
WORDS = [
    "--num-envs", "4", "--max-steps", "1600", "--random-steps", "200", "--training-starts", "200",
    "--log-period", "200", "--eval-period", "600", "--eval-n-trajs", "5", "--batch-size", "64",
    "--checkpoint-period", "400", "--demos", "2", "--json",
]  # fmt: skip
PICTURES = [
    "--num-envs", "2", "--max-steps", "240", "--random-steps", "40", "--training-starts", "40",
    "--log-period", "20", "--eval-period", "120", "--eval-n-trajs", "2", "--batch-size", "16",
    "--checkpoint-period", "40", "--demos", "1", "--env.image-size", "32", "32", "--json",
]  # fmt: skip
IMITATION = ["--max-updates", "400", "--demos", "4", "--log-period", "20", "--eval-n-trajs", "3",
             "--checkpoint-period", "60", "--eval-period", "200", "--json"]  # fmt: skip


def metrics(folder: Path) -> list[dict]:
    """Metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if not k.startswith("clock/")} for line in lines]


def test_a_run_leaves_what_it_promises(tmp_path):
    """Metrics, checkpoints, settings; and the policy can be judged from them."""
    result = train(TINY, tmp_path / "run")
    assert result.steps == 600 and result.updates > 50
    lines = metrics(tmp_path / "run")
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
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b") == metrics(tmp_path / "c")


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("sac", WORDS), pytest.param("drq", PICTURES, marks=pytest.mark.slow), ("bc", IMITATION)],
)
def test_killed_and_resumed_equals_uninterrupted(tmp_path, algorithm, words):
    """SIGKILL in the middle, with the default threads: the metrics are the same to the bit."""
    command = [sys.executable, "-m", "maniple", "train", algorithm, *words]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*command, "--run-dir", str(tmp_path / "whole")], check=True, **quiet)
    broken = tmp_path / "broken"
    victim = subprocess.Popen([*command, "--run-dir", str(broken)], **quiet)
    while not (broken / "metrics.jsonl").exists() or len(lines_so_far(broken)) < 6:
        assert victim.poll() is None
        time.sleep(0.01)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    subprocess.run([*command, "--run-dir", str(broken), "--resume"], check=True, **quiet)
    assert metrics(broken) == metrics(tmp_path / "whole")


def lines_so_far(folder: Path) -> list[str]:
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


def test_a_run_that_was_stopped_before_its_first_update_goes_on(tmp_path):
    """Its optimisers have a state although they have done nothing."""
    config = TINY.replace(max_steps=40, eval_n_trajs=0)
    assert train(config, tmp_path / "run").updates == 0
    assert train(config.replace(max_steps=200), tmp_path / "run", resume=True).updates > 0


def test_the_final_weights_are_evaluated(tmp_path):
    """Also where the run should have ended at a success that it did not reach."""
    config = TINY.replace(stop_at_success=1.0, eval_period=200, max_steps=500)
    result = train(config, tmp_path / "run")
    lines = metrics(tmp_path / "run")
    assert result.stopped_by == "steps"
    assert [line["step"] for line in lines if "success" in line][-1] == result.steps == 500
    policy = load_policy(tmp_path / "run", best=False)
    envs = policy.envs(4)
    again = evaluate(envs, policy.act, 4, FIRST_SEED)
    envs.close()
    assert again == result.evaluation


def test_success_of_nothing_ends_at_the_first_evaluation(tmp_path):
    """0.0 is a success rate like any other."""
    result = train(TINY.replace(stop_at_success=0.0), tmp_path / "run")
    assert result.stopped_by == "success" and result.steps == 300


def test_the_number_of_threads_does_not_follow_the_clock(tmp_path):
    """Another number rounds differently: it is a setting, whatever torch had before."""
    torch.set_num_threads(2)
    train(TrainConfig.of(max_steps=100, eval_n_trajs=0), tmp_path / "run")
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"demos": 2, "env": EnvConfig(control="joint")}, "acts by 'ee', not by"),
        (
            {"env": EnvConfig(cameras=("front",), observations=("target_pos",))},
            "env.observations names none of it",
        ),
        ({"task": "LeRobot-v0", "demos": 2}, "no scripted expert"),
        ({"max_stepps": 3}, "Did you mean max_steps"),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_once(settings, says):
    """Before anything is made."""
    with pytest.raises(BadConfig, match=says):
        TrainConfig.of(**settings)


def test_an_unknown_algorithm_is_an_error():
    """It gets no other algorithm's settings."""
    with pytest.raises(UnknownName, match="Did you mean sac"):
        preset("sacc")


@pytest.mark.parametrize("kinds", [("depth",), ("rgb", "depth")])
@pytest.mark.parametrize("asymmetric", [False, True])
def test_depth_is_a_picture(tmp_path, kinds, asymmetric):
    """The policy sees it through an encoder, and no critic takes it for numbers."""
    config = TINY.replace(
        num_envs=2, max_steps=60, batch_size=8, random_steps=20, training_starts=20, eval_n_trajs=0,
        env=EnvConfig(cameras=("front",), image_size=(32, 32), image_kinds=kinds),
        agent=DrQConfig(eye=EyeConfig(width=8), hidden=(16,), frame_stack=2, asymmetric=asymmetric),
    )  # fmt: skip
    train(config, tmp_path / "run")
    policy = load_policy(tmp_path / "run", best=False)
    assert {f"front_{kind}" for kind in kinds} <= set(policy.needs)
    assert "target_pos" not in policy.needs, "the simulator's truth"
    states = policy._agent.critic_eye.states
    assert not [name for name in states if name.startswith("front_")]


@pytest.mark.parametrize("kind", ["segmentation", "mask", "point_cloud"])
def test_kinds_that_no_network_reads_are_refused(tmp_path, kind):
    """Instead of being seen by nobody."""
    env = EnvConfig(cameras=("front",), image_size=(32, 32), image_kinds=("rgb", kind))
    with pytest.raises(BadConfig, match=f"No network here reads 'front_{kind}'"):
        train(TINY.replace(num_envs=2, env=env, agent=DrQConfig()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_folder_with_dots_in_its_path(tmp_path):
    """The replay that a checkpoint needs is not taken for an old one."""
    (tmp_path / "sub").mkdir()
    config = TINY.replace(max_steps=200, eval_n_trajs=0)
    train(config, tmp_path / "sub" / ".." / "run")
    assert list((tmp_path / "run" / "replay").glob("*.safetensors"))
    train(config.replace(max_steps=300), tmp_path / "run", resume=True)


def test_work_is_saved_before_the_last_evaluation(tmp_path, monkeypatch):
    """Whoever asked a run to stop may not wait for the evaluation."""

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("maniple.run.evaluation.Evaluator.__call__", killed)
    config = TINY.replace(max_steps=200, eval_period=0, checkpoint_period=0)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run")
    monkeypatch.undo()
    assert train(config.replace(max_steps=300), tmp_path / "run", resume=True).steps == 300


def test_changed_settings_stay_for_the_next_resume(tmp_path):
    """And an unknown new setting of a later version is no difference."""
    config = TINY.replace(max_steps=200, eval_n_trajs=0)
    train(config, tmp_path / "run")
    file = tmp_path / "run" / "config.yaml"
    file.write_text(file.read_text().replace("  renderer: auto\n", ""))
    train(config.replace(max_steps=300), tmp_path / "run", resume=True)
    assert config_of(RunFolder(tmp_path / "run").config()).run.max_steps == 300
    changed = config.replace(agent=SACConfig(hidden=(32, 32), lr=0.01))
    with pytest.raises(BadConfig, match=r"begun with agent.lr = 0.001"):
        train(changed, tmp_path / "run", resume=True)


def test_an_old_run_is_refused_in_words(tmp_path):
    """As version 0.1 left it: another layout, fewer settings."""
    config = TINY.replace(max_steps=200, eval_n_trajs=0)
    train(config, tmp_path / "run")
    (state,) = (tmp_path / "run").glob("checkpoints/step-*/state.json")
    state.write_text('{"steps": 200, "course": {}}')
    manifest = state.with_name("manifest.json")
    entries = json.loads(manifest.read_text())
    entries["state.json"] = {"bytes": state.stat().st_size, "sha256": digest(state)}
    manifest.write_text(json.dumps(entries))
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    with pytest.raises(BadConfig, match="another version of maniple"):
        train(config.replace(max_steps=300), tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before


class Fifty(gymnasium.Env):
    """Episodes of fifty steps, a reward of 1 each; no success, and no state to store."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.zeros(2, np.float32), 1.0, False, self.steps == 50, {}


@pytest.fixture
def fifty():
    """Its id."""
    gymnasium.register("test/Fifty-v0", Fifty)
    yield "test/Fifty-v0"
    del gymnasium.registry["test/Fifty-v0"]


def test_episodes_of_a_hosted_environment_begin_anew_after_a_resume(tmp_path, fifty):
    """Half an episode before and a whole one after are not one of ninety steps."""
    config = TINY.replace(task=fifty, max_steps=360, eval_n_trajs=0, engine="serial")
    train(config, tmp_path / "run")
    train(config.replace(max_steps=1200), tmp_path / "run", resume=True)
    assert {line.get("train_length", 50.0) for line in metrics(tmp_path / "run")} == {50.0}


def test_success_is_not_a_return(tmp_path, fifty):
    """A task that does not say what success is cannot end at a success rate."""
    config = TINY.replace(task=fifty, stop_at_success=0.9, engine="serial")
    with pytest.raises(BadConfig, match="does not say what success is"):
        train(config, tmp_path / "run")
    for rate in (-0.1, 1.5, float("nan")):
        with pytest.raises(BadConfig, match="stop_at_success"):
            TINY.replace(stop_at_success=rate)


def test_imitation_has_no_limit_of_steps():
    """Its length is a number of updates, whatever that number is."""
    config = preset("bc").replace(max_updates=150_000)
    stop = Stop(config.run.max_steps, config.run.max_updates)
    assert stop.reason(100_000, 100_000) == "" and stop.reason(150_000, 150_000) == "updates"


class NeverResets(gymnasium.Env):
    """Works once, and never again."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    resets = 0

    def reset(self, *, seed=None, options=None):
        self.resets += 1
        if self.resets > 1:
            raise OSError("no scene")
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), 0.0, False, True, {}


def test_rows_that_fail_again_and_again_do_not_keep_a_run_from_its_end(tmp_path):
    """Failed steps count, or nothing would: only rows that pause do not."""
    gymnasium.register("NeverResets-v0", NeverResets)
    try:
        config = TINY.replace(task="NeverResets-v0", eval_n_trajs=0, engine="serial", max_steps=80)
        assert train(config, tmp_path / "run").steps == 80
    finally:
        del gymnasium.registry["NeverResets-v0"]
