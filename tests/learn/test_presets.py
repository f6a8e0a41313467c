"""What a run begins with: settings with which the task can be shown, and learned from a folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

import maniple
from maniple.envs.config import ALL
from maniple.learn.algorithms import ALGORITHMS
from maniple.learn.config import preset
from maniple.learn.demos import record
from maniple.registry import EXPERTS
from tests.task_sample import chosen


@pytest.mark.parametrize("task", [t for t in chosen() if t in EXPERTS])
def test_every_task_can_be_shown_by_the_control_that_it_is_learned_with(task):
    configs = [preset(algorithm, task) for algorithm in ALGORITHMS]
    by_control = {config.env.control: config for config in configs if config.demos.demos}
    for config in by_control.values():
        assert len(record(config.replace(num_envs=8, env=bare(config)), 8)) == 8


def bare(config):
    """The same environments without pictures, which experts do not look at."""
    return replace(config.env, cameras=(), observations=ALL)


@pytest.mark.parametrize("algorithm", ["sac", "bc"])
@pytest.mark.parametrize("task", ["ReachTarget", "PutMoneyInSafe", "SweepToDustpanOfSize"])
def test_the_panda_is_learned_by_steps_of_the_tip(algorithm, task):
    config = preset(algorithm, task)
    assert config.env.control == ("delta_position" if task == "ReachTarget" else "delta_ee")
    assert config.agent.relative


@pytest.fixture(scope="module")
def by_poses(tmp_path_factory):
    """A dataset whose actions are absolute poses, not what the preset would record."""
    from maniple.cli.main import main

    out = tmp_path_factory.mktemp("shown") / "poses"
    words = ["record", "push_button", "--out", str(out), "--episodes", "2", "--num-envs", "2"]
    assert main([*words, "--format", "lerobot", "--control", "ik"]) in (0, None)
    return out


def test_imitation_acts_as_it_was_shown_and_is_shown_nothing_else(inside, tmp_path, by_poses):
    run = tmp_path / "run"
    words = ["--max-updates", 10, "--eval-n-trajs", 0, "--run-dir", run]
    inside("train", "bc", "--task", "push_button", "--demo-path", by_poses, *words)
    config = (run / "config.yaml").read_text()
    assert "demos: 0" in config and "control: ik" in config
    assert maniple.load_policy(run, best=False).envs(1).single_action_space.shape == (8,)


def test_a_folder_does_not_choose_how_reinforcement_learning_acts(by_poses):
    config = preset("sac", "push_button", demo_path=by_poses)
    assert config.env.control == "delta_position" and config.demos.demos == 0


def test_a_folder_that_is_not_there_is_told(inside, tmp_path):
    missing = tmp_path / "missing"
    told = inside("train", "bc", "--task", "push_button", "--demo-path", missing, code=2)
    assert str(missing) in told.err


def test_the_default_that_help_shows_may_be_typed():
    from maniple.cli.train.run import defaults

    words = ["--task", "push_button", "--demo-path", "None"]
    assert defaults("train bc", words).config == defaults("train bc", words[:2]).config


def test_of_a_flag_that_is_repeated_the_last_counts():
    """As argparse has it: the preset must be that of the task that is trained."""
    from maniple.cli.train.words import value_of

    words = ["--task", "so101/Reach-v0", "--seed=1", "--task=panda/OpenDrawer-v0"]
    assert value_of(words, "--task") == "panda/OpenDrawer-v0"
    assert value_of(words, "--seed") == "1"
    assert value_of(words, "--backend") is None
