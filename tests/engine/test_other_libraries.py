"""What other people's code asks of our environments: LeRobot, TorchRL, Stable-Baselines3."""

import os
import subprocess
import sys

import doc_blocks
import gymnasium
import numpy as np
import pytest

import maniple
from maniple.core.errors import BadConfig
from maniple.lerobot_env import make_env
from maniple.registry import EXPERTS


class Buttons(gymnasium.Env):
    """Somebody's environment with switches for actions."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Box(0, 1, (3,), np.bool_)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), float(np.sum(action)), False, False, {}


def test_bool_actions(make_vec):
    envs = make_vec(Buttons, 2, engine="serial")
    envs.reset(seed=0)
    _, reward, *_ = envs.step(np.array([[True, False, True], [False] * 3]))
    assert reward.tolist() == [2.0, 0.0]
    with pytest.raises(maniple.core.errors.BadAction, match="bool"):
        real = make_vec("so101/Reach-v0", 1)
        real.reset()
        real.step(np.ones((1, 4), bool))


def test_an_unknown_option_is_a_type_error():
    """TorchRL tries options, and goes on without those that give this error."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'categorical_action'"):
        maniple.make("so101/Reach-v0", categorical_action=True)
    with pytest.raises(BadConfig, match="Did you mean cameras"):
        maniple.make_vec("so101/Reach-v0", 1, camras=())


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_is_success_stands_beside_success(mode, make_vec):
    envs = make_vec("so101/Reach-v0", 4, autoreset_mode=mode)
    expert = maniple.expert("so101/Reach-v0", 4)
    obs, info = envs.reset(seed=0)
    assert info["is_success"].tolist() == info["success"].tolist()
    for _ in range(60):
        obs, _, terminated, truncated, info = envs.step(expert.act(obs))
        assert np.array_equal(info["is_success"], info["success"])
        expert.reset(terminated | truncated)
        if terminated.any():
            found = info["final_info"] if mode == "SameStep" else info
            assert found["is_success"][terminated].all() and found["_is_success"][terminated].all()
            return
    raise AssertionError("the expert never got there")


def test_a_single_environment_has_what_a_row_has():
    env = gymnasium.make("panda/OpenDrawer-v0")
    env.reset(seed=0)
    for name in ("sentence", "task_description", "variation", "renderer", "elapsed_steps"):
        assert env.get_wrapper_attr(name) is not None
    assert "drawer" in env.unwrapped.sentence
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = env.unwrapped.nothing
    env.close()


@pytest.mark.parametrize("task", ["so101/LiftCube-v0", "panda/OpenDrawer-v0", "piper/Reach-v0"])
def test_what_lerobots_rollout_asks_for(task):
    """In the order in which it asks; see docs/how-to/other-libraries.md."""
    assert task in EXPERTS
    suites = make_env(task, n_envs=2, image_size=(32, 32))
    (suite, (envs,)) = next((name, list(envs.values())) for name, envs in suites.items())
    obs, info = envs.reset(seed=[3, 4], options={"lerobot_new_rollout": True})
    assert suite == task
    steps = envs.call("_max_episode_steps")
    assert len(steps) == 2 and all(isinstance(step, int) for step in steps)
    assert all(isinstance(text, str) and text for text in envs.call("task_description"))
    assert set(obs) == {"agent_pos", "pixels"} and len(obs["pixels"]) == 2
    assert obs["agent_pos"].shape[0] == 2 and obs["agent_pos"].dtype == np.float32
    assert envs.observation_space.contains(obs)
    *_, info = envs.step(envs.action_space.sample())
    assert info["is_success"].dtype == bool
    assert envs.spec is not None and envs.spec.id == task
    envs.close()


def test_final_observations_have_lerobots_names():
    suites = make_env(
        "so101/Reach-v0", 2, image_size=(16, 16), autoreset_mode="SameStep", max_episode_steps=2
    )
    envs = suites["so101/Reach-v0"][0]
    envs.reset(seed=0)
    envs.step(envs.action_space.sample() * 0)
    *_, info = envs.step(envs.action_space.sample() * 0)
    last = info["final_obs"][0]
    assert set(last) == {"agent_pos", "pixels"} and last["pixels"]["front"].shape == (16, 16, 3)
    envs.close()


def test_lerobot_needs_pictures():
    with pytest.raises(BadConfig, match="cameras"):
        make_env("so101/Reach-v0", cameras=())
    with pytest.raises(BadConfig, match="leave observations out"):
        make_env("so101/Reach-v0", observations=("target_pos",), image_size=(16, 16))


def test_cameras_have_their_own_names():
    suites = make_env("PiperMobileRobot-v0", image_size=(16, 16), renderer="fast")
    obs, _ = suites["PiperMobileRobot-v0"][0].reset(seed=0)
    assert set(obs["pixels"]) == {"3rd", "wrist"}


def interpreter_with(library):
    """An interpreter that has a library; None: nobody named one."""
    for python in (sys.executable, *os.environ.get("MANIPLE_LIBRARIES", "").split(os.pathsep)):
        if python and not subprocess.run([python, "-c", f"import {library}, maniple"],
                                         capture_output=True).returncode:  # fmt: skip
            return python
    return None


@pytest.mark.parametrize("library", ["torchrl.envs", "skrl.envs", "ray.rllib"])
def test_the_page_about_a_library(library, tmp_path):
    """The lines that docs/how-to/other-libraries.md shows."""
    page = doc_blocks.ROOT / "docs/how-to/other-libraries.md"
    (block,) = [b for b in doc_blocks.blocks(page) if f"from {library}" in b.code]
    if (python := interpreter_with(library)) is None:
        pytest.skip(f"no interpreter in MANIPLE_LIBRARIES has {library}")
    words = [python, "-c", block.code]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr


def test_a_vector_environment_says_how_it_resets(make_vec):
    """TorchRL looks at this attribute, as Gymnasium's own vector environments have it."""
    envs = make_vec("so101/Reach-v0", 2, autoreset_mode="Disabled")
    assert envs.autoreset_mode is gymnasium.vector.AutoresetMode.DISABLED
