"""The real CoppeliaSim and RLBench, where they are installed; everything else is skipped.

COPPELIASIM_ROOT=... python -m pytest -m rlbench_real tests/envs/coppelia
"""

import os
import signal
import time
from importlib.util import find_spec

import numpy as np
import pytest

import maniple
from maniple.core.errors import BadAction, ManipleError
from maniple.envs.coppelia import find_root

HOME_POSE = (0.2784, -0.0082, 1.4722, 0.0, 0.9927, 0.0, 0.121)
"""Of the gripper at the beginning of an episode, as it was measured."""


def _why_not():
    try:
        find_root()
    except ManipleError as error:
        return str(error)
    return "" if find_spec("rlbench") and find_spec("pyrep") else "rlbench is not installed"


WHY_NOT = _why_not()
pytestmark = [
    pytest.mark.rlbench_real,
    pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "installed"),
]


@pytest.fixture
def make():
    made = []

    def build(task="ReachTarget", num_envs=1, **options):
        made.append(maniple.make_vec(task, num_envs, backend="rlbench", **options))
        return made[-1]

    yield build
    for envs in made:
        envs.close()


def towards(obs, offset=(0.01, 0.0, 0.0), grip=1.0):
    action = np.concatenate([obs["gripper_pose"], np.full((len(obs["gripper_pose"]), 1), grip)], 1)
    action[:, :3] += offset
    return action.astype(np.float32)


def test_states_without_a_display(make):
    envs = make("OpenDrawer", 2)
    obs, info = envs.reset(seed=0)
    assert envs.observation_space.contains(obs)
    assert "drawer" in info["sentence"][0]
    np.testing.assert_allclose(obs["gripper_pose"][0, :3], HOME_POSE[:3], atol=5e-3)
    assert obs["gripper_open"].tolist() == [[1.0], [1.0]]


def test_a_centimetre_is_a_centimetre(make):
    envs = make("ReachTarget", arm_mode="ik")
    obs, _ = envs.reset(seed=1)
    before = obs["gripper_pose"][0, :3].copy()
    moved = 0
    for offset in ((0.01, 0, 0), (0, 0.01, 0), (0, 0, -0.01)):
        obs, *_, info = envs.step(towards(obs, offset))
        if not info["invalid_action"][0]:
            gap = obs["gripper_pose"][0, :3] - before - offset
            assert np.abs(gap).max() < 4e-3, gap
            moved += 1
        before = obs["gripper_pose"][0, :3].copy()
    assert moved >= 2


def test_pictures(make):
    kinds = ("rgb", "depth", "mask", "point_cloud")
    envs = make(cameras=("front", "wrist"), image_size=(48, 64), image_kinds=kinds)
    obs, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(obs)
    assert obs["front_rgb"].std() > 5 and obs["wrist_rgb"].std() > 0
    assert 0.3 < obs["front_depth"].mean() < 4.5
    facts = envs.get_attr("camera_facts")[0]
    assert facts["front_camera_intrinsics"].shape == (3, 3)
    obs, *_, info = envs.step_chunk(np.repeat(towards(obs, (0, 0, 0))[:, None], 4, axis=1))
    assert info["num_steps"][0] == 4 and obs["front_rgb"].std() > 5


def test_seeds(make):
    envs = make(observations=("gripper_pose", "task_low_dim_state"))
    a, info_a = envs.reset(seed=7)
    b, info_b = envs.reset(seed=7)
    c, _ = envs.reset(seed=8)
    np.testing.assert_allclose(a["task_low_dim_state"], b["task_low_dim_state"], atol=1e-4)
    assert info_a["variation"][0] == info_b["variation"][0]
    assert not np.allclose(a["task_low_dim_state"], c["task_low_dim_state"], atol=1e-3)


def test_what_cannot_be_done_is_told_at_once(make):
    envs = make(step_timeout_s=60)
    obs, _ = envs.reset(seed=0)
    start = time.monotonic()
    action = towards(obs)
    action[0, 0] = np.nan
    with pytest.raises(BadAction):
        envs.step(action)
    *_, info = envs.step(towards(obs, (3.0, 0.0, 0.0)))
    assert info["invalid_action"][0] and time.monotonic() - start < 30
    *_, info = envs.step(towards(obs, (0, 0, 0)))
    assert envs.stats()["restarts"] == 0


@pytest.mark.parametrize("mode", ["planning", "joint_velocity", "joint_position"])
def test_arm_modes(make, mode):
    observed = ("gripper_pose", "joint_positions")
    envs = make(arm_mode=mode, observations=observed)
    obs, _ = envs.reset(seed=0)
    if mode == "planning":
        action = towards(obs, (0.02, 0.0, -0.05))
    else:
        joints = obs["joint_positions"] if mode == "joint_position" else np.zeros((1, 7))
        action = np.concatenate([joints, np.ones((1, 1))], 1).astype(np.float32)
    obs, *_, info = envs.step(action)
    assert np.isfinite(obs["gripper_pose"]).all()
    assert mode == "planning" or not info["invalid_action"][0]


def test_a_demonstration(make):
    envs = make(step_timeout_s=300)
    envs.reset(seed=0)
    demo = envs.call("live_demos", 1)[0][0]
    assert len(demo["action"]) > 5
    assert demo["obs"]["gripper_pose"].shape == (len(demo["action"]) + 1, 7)


def test_a_killed_simulator_is_replaced(make):
    envs = make(num_envs=2)
    obs, _ = envs.reset(seed=0)
    os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
    still = towards(obs, (0, 0, 0))
    *_, truncated, info = envs.step(still)
    assert truncated.tolist() == [True, False] and "worker_restarted" in info
    for _ in range(2):
        obs, *_ = envs.step(still)
    assert envs.stats()["restarts"] == 1 and np.isfinite(obs["gripper_pose"]).all()
