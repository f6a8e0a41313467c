"""The adapter over RLBench's stand-in: what a vector environment promises."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
from rlbench_fixtures import HAS_XVFB, STANDIN, coppelia, install, make, version  # noqa: F401

import maniple
from maniple.core.errors import BadAction, BadConfig, ManipleError, WorkerDied
from maniple.learn.config import preset
from maniple.learn.make import make_envs, make_training_envs
from maniple.registry import recipe
from maniple.sim.xvfb import SOCKETS


def towards(obs, offset=(0.01, 0.0, 0.0), grip=1.0):
    """A small step from where the gripper is."""
    action = np.concatenate([obs["gripper_pose"], np.full((len(obs["gripper_pose"]), 1), grip)], 1)
    action[:, :3] += offset
    return action.astype(np.float32)


def test_reset_and_step(make):
    envs = make(num_envs=2)
    assert envs.engine_name == "process" and envs.stats()["workers"] == 2
    obs, info = envs.reset(seed=3)
    assert envs.observation_space.contains(obs)
    assert info["sentence"][0] == f"open_drawer number {info['variation'][0]}"
    assert envs.get_attr("sentence") == tuple(info["sentence"])
    before = obs["gripper_pose"].copy()
    obs, reward, terminated, truncated, info = envs.step(towards(obs, (0.0, 0.02, 0.0), grip=0.0))
    np.testing.assert_allclose(obs["gripper_pose"][:, 1] - before[:, 1], 0.02, atol=1e-6)
    assert (obs["gripper_open"] == 0).all() and (reward == 0).all()
    assert not (terminated | truncated | info["invalid_action"]).any()


def test_both_versions_of_rlbench(version, tmp_path, monkeypatch):
    install(version, tmp_path, monkeypatch)
    for mode in ("ik", "planning", "joint_velocity"):
        envs = maniple.make_vec("OpenDrawer", 1, backend="rlbench", arm_mode=mode)
        try:
            obs, _ = envs.reset(seed=0)
            action = np.zeros((1, 8), np.float32) if mode == "joint_velocity" else towards(obs)
            *_, info = envs.step(action)
            assert not info["invalid_action"].any(), info
        finally:
            envs.close()


@pytest.mark.parametrize(("mode", "size"), [("delta_ee", 7), ("delta_position", 4)])
def test_deltas_mean_what_they_mean_on_mujoco(mode, size, version, tmp_path, monkeypatch):
    """One is 3 cm and 0.15 rad; RLBench is given the quaternion of the rotation vector."""
    install(version, tmp_path, monkeypatch)
    envs = maniple.make_vec("OpenDrawer", 1, backend="rlbench", arm_mode=mode)
    try:
        assert envs.single_action_space.shape == (size,)
        assert maniple.make_vec("OpenDrawer", 1, control=mode).single_action_space.shape == (size,)
        before, _ = envs.reset(seed=0)
        before = before["gripper_pose"].copy()
        action = np.zeros((1, size), np.float32)
        action[0, 1], action[0, -1] = 1.0, 1.0
        if mode == "delta_ee":
            action[0, 5] = 1.0
        obs, *_, info = envs.step(action)
        assert not info["invalid_action"].any(), info
        after = obs["gripper_pose"]
        np.testing.assert_allclose(after[:, :3] - before[:, :3], [[0, 0.03, 0]], atol=1e-6)
        turned = 2 * np.arccos(np.clip(np.abs((after[:, 3:] * before[:, 3:]).sum()), 0, 1))
        assert turned == pytest.approx(0.15 if mode == "delta_ee" else 0.0, abs=5e-3)
    finally:
        envs.close()


def test_the_same_seed_gives_the_same_episode(make):
    one, other = (make(num_envs=2, observations=("task_low_dim_state",)) for _ in range(2))
    a, info_a = one.reset(seed=5)
    b, info_b = other.reset(seed=5)
    assert a["task_low_dim_state"].shape == (2, 3)
    assert np.array_equal(a["task_low_dim_state"], b["task_low_dim_state"])
    assert np.array_equal(info_a["variation"], info_b["variation"])
    assert not np.array_equal(a["task_low_dim_state"][0], a["task_low_dim_state"][1])
    again, _ = one.reset()
    assert not np.array_equal(a["task_low_dim_state"], again["task_low_dim_state"])


def test_variations(make):
    envs = make(num_envs=1, variation=2)
    assert envs.reset(seed=0)[1]["variation"][0] == 2
    assert envs.reset(options={"variation": 1})[1]["variation"][0] == 1


def test_pictures_are_height_by_width_and_drawn_once_per_chunk(make):
    kinds = ("rgb", "depth", "mask", "point_cloud")
    envs = make(num_envs=1, cameras=("front",), image_size=(16, 24), image_kinds=kinds)
    obs, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(obs)
    assert obs["front_rgb"].shape == (1, 16, 24, 3)
    assert (obs["front_rgb"][0, 0, :, 1] == 255).all() and obs["front_rgb"][0, 1, 0, 1] == 0
    assert obs["front_depth"][0, 0, 0] == 1.5 and obs["front_mask"][0, 0, 0] == 42
    drawn = int(obs["front_rgb"][0, 0, 0, 0])
    still = np.repeat(towards(obs, (0, 0, 0))[:, None], 16, axis=1)
    obs, *_, info = envs.step_chunk(still)
    assert info["num_steps"][0] == 16 and obs["front_rgb"][0, 0, 0, 0] == drawn + 1
    obs, *_ = envs.step(still[:, 0])
    assert obs["front_rgb"][0, 0, 0, 0] == drawn + 2
    assert envs.render()[0].shape == (16, 24, 3)
    assert envs.get_attr("camera_facts")[0]["front_camera_intrinsics"][0, 0] < 0


def test_invalid_actions_change_nothing_and_are_counted(make):
    envs = make(num_envs=2, invalid_penalty=0.5)
    obs, _ = envs.reset(seed=0)
    before = obs["gripper_pose"].copy()
    far = towards(obs, (1.0, 0.0, 0.0))
    far[1] = towards(obs)[1]
    obs, reward, terminated, truncated, info = envs.step(far)
    assert info["invalid_action"].tolist() == [True, False]
    assert reward.tolist() == [-0.5, 0.0] and not (terminated | truncated).any()
    assert np.array_equal(obs["gripper_pose"][0], before[0])
    assert "IK" in info["invalid_reason"][0]
    nothing = far.copy()
    nothing[:, 3:7] = 0.0  # No quaternion: never given to the simulator.
    *_, info = envs.step(nothing)
    assert info["invalid_actions"].tolist() == [2, 1]
    assert envs.stats()["restarts"] == 0


def test_quaternions_need_not_be_normalised(make):
    envs = make(num_envs=1)
    obs, _ = envs.reset(seed=0)
    action = towards(obs)
    action[:, 3:7] *= 1.3
    assert not envs.step(action)[4]["invalid_action"].any()


def test_numbers_that_are_not_finite_never_reach_the_simulator(make):
    envs = make(num_envs=1, step_timeout_s=20)
    obs, _ = envs.reset(seed=0)
    action = towards(obs)
    action[0, 1] = np.nan
    with pytest.raises(BadAction, match="NaN"):
        envs.step(action)
    action[0, 1] = np.inf
    *_, info = envs.step(action)
    assert info["invalid_action"][0] and "not finite" in info["invalid_reason"][0]
    assert not envs.step(towards(obs))[4]["invalid_action"].any()


def test_success_ends_an_episode_and_time_cuts_it(make):
    envs = make(num_envs=1, observations=("gripper_pose", "task_low_dim_state"))
    obs, _ = envs.reset(seed=0)
    for _ in range(40):
        gap = obs["task_low_dim_state"][0] - obs["gripper_pose"][0, :3]
        step = gap * min(1.0, 0.04 / np.linalg.norm(gap))
        obs, reward, terminated, truncated, info = envs.step(towards(obs, step))
        if terminated[0]:
            break
    assert terminated[0] and not truncated[0] and reward[0] == 1.0 and info["success"][0]
    *_, info = envs.step(towards(obs))  # The reset.
    assert "sentence" in info

    short = make(num_envs=1, max_episode_steps=3)
    obs, _ = short.reset(seed=0)
    ends = [short.step(towards(obs, (0, 0, 0)))[3][0] for _ in range(3)]
    assert ends == [False, False, True]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_autoreset(make, mode):
    envs = make(num_envs=2, max_episode_steps=2, autoreset_mode=mode)
    obs, _ = envs.reset(seed=0)
    envs.step(towards(obs))
    last, *_, truncated, info = envs.step(towards(obs, (0.02, 0.0, 0.0)))
    assert truncated.all()
    if mode == "SameStep":
        finals = np.stack([final["gripper_pose"] for final in info["final_obs"]])
        np.testing.assert_allclose(finals[:, 0], obs["gripper_pose"][:, 0] + 0.02, atol=1e-6)
    elif mode == "Disabled":
        last, _ = envs.reset(options={"reset_mask": truncated})
    else:
        last, *_ = envs.step(towards(obs))
    assert np.array_equal(last["gripper_pose"], obs["gripper_pose"])


def test_a_partial_reset_leaves_the_other_simulators_alone(make):
    envs = make(num_envs=2)
    obs, _ = envs.reset(seed=0)
    before, *_ = envs.step(towards(obs, (0.02, 0.0, 0.0)))
    after, info = envs.reset(options={"reset_mask": np.array([True, False])})
    assert "worker_restarted" not in info and info["_sentence"].tolist() == [True, False]
    assert np.array_equal(after["gripper_pose"][1], before["gripper_pose"][1])
    with pytest.raises(BadConfig, match="give 0 or more"):
        envs.reset(options={"variation": -1})
    with pytest.raises(BadConfig, match="unknown options"):
        envs.reset(options={"variatoin": 1})


def test_send_and_receive(make):
    envs = make(num_envs=2)
    obs, _ = envs.reset(seed=0)
    envs.send(towards(obs)[[1]], [1])
    rows, (seen, *_) = envs.recv(1)
    assert rows.tolist() == [1] and seen["gripper_pose"].shape == (1, 7)


def test_a_picture_size_alone_means_two_cameras(make):
    obs, _ = make(num_envs=1, image_size=(8, 12)).reset(seed=0)
    assert obs["front_rgb"].shape == obs["wrist_rgb"].shape == (1, 8, 12, 3)


def test_live_demos(make):
    envs = make(num_envs=2, cameras=("front",), image_size=(8, 8))
    envs.reset(seed=0)
    for (demo,) in envs.call("live_demos", 1):
        assert demo["action"].shape == (4, 8) and demo["obs"]["gripper_pose"].shape == (5, 7)
        assert demo["obs"]["front_rgb"].shape == (5, 8, 8, 3)
        np.testing.assert_allclose(demo["action"][:, :7], demo["obs"]["gripper_pose"][1:])


def test_a_live_demo_begins_where_its_seed_begins(make):
    envs = make(num_envs=1, observations=("gripper_pose", "task_low_dim_state"))
    envs.reset(seed=17)
    ((demo,),) = envs.call("live_demos", 1)
    assert demo["seed"] == 17
    again, _ = envs.reset(seed=demo["seed"])
    assert np.array_equal(demo["obs"]["task_low_dim_state"][0], again["task_low_dim_state"][0])


def test_nothing_is_left_behind(make, tmp_path):
    displays = set(SOCKETS.iterdir()) if SOCKETS.is_dir() else set()
    envs = make(num_envs=2, cameras=("front",), image_size=(8, 8))
    envs.reset(seed=0)
    folder = tmp_path / f"maniple-coppelia-{os.getuid()}"
    homes = list(folder.iterdir())
    assert len(homes) == 2 and all(home.stat().st_mode & 0o077 == 0 for home in homes)
    pids = [int(home.name) for home in homes]
    started_with = Path(f"/proc/{pids[0]}/environ").read_bytes()
    assert b"LD_LIBRARY_PATH=" + os.environ["COPPELIASIM_ROOT"].encode() in started_with
    envs.close()
    assert not list(folder.iterdir())
    until = time.monotonic() + 5
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert (set(SOCKETS.iterdir()) if SOCKETS.is_dir() else set()) <= displays


def test_a_killed_parent_takes_everything_along(coppelia, tmp_path):
    code = (
        "import maniple, time\n"
        "envs = maniple.make_vec('OpenDrawer', 2, backend='rlbench', cameras=('front',))\n"
        "envs.reset(seed=0)\n"
        "print(*[handle.pid for handle in envs._engine._handles], flush=True)\n"
        "time.sleep(100)\n"
    )
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        everyone = workers + [child for worker in workers for child in worker.children()]
        assert len(everyone) == 2 + 2 * HAS_XVFB, "two workers, each with a display"
        parent.kill()
    until = time.monotonic() + 10
    while any(map(_is_alive, everyone)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(_is_alive, everyone))


def _is_alive(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_no_display_without_cameras(make):
    displays = set(SOCKETS.iterdir()) if SOCKETS.is_dir() else set()
    make(num_envs=1).reset(seed=0)
    assert (set(SOCKETS.iterdir()) if SOCKETS.is_dir() else set()) <= displays


@pytest.mark.parametrize("fault", ["segv@step:2", "hang@step:2", "broken@step:2", "exit@step:2"])
def test_a_lost_simulator_is_replaced_alone(make, fault, tmp_path):
    envs = make(num_envs=2, fault=fault, once=True, step_timeout_s=3)
    obs, _ = envs.reset(seed=0)
    still = towards(obs, (0, 0, 0))
    envs.step(still)
    obs, _, terminated, truncated, info = envs.step(still)
    assert truncated.sum() == 1 and not terminated.any()
    lost = int(np.flatnonzero(truncated)[0])
    why = info["worker_restarted"][lost]
    words = {"segv": "SIGSEGV", "hang": "no answer", "broken": "V-REP side", "exit": "code 7"}
    assert words[fault.partition("@")[0]] in why
    for _ in range(3):
        obs, _, terminated, truncated, info = envs.step(still)
        assert not (terminated | truncated).any() and np.isfinite(obs["gripper_pose"]).all()
    assert envs.stats()["restarts"] == 1
    # What the lost one left is swept by the next that starts: two workers and a spare stay.
    kept, patience = tmp_path / f"maniple-coppelia-{os.getuid()}", time.monotonic() + 60
    while len(list(kept.iterdir())) != 3:
        assert time.monotonic() < patience, list(kept.iterdir())
        time.sleep(0.05)


def test_a_simulator_lost_in_reset_is_replaced(make):
    envs = make(num_envs=2, fault="segv@reset:2", once=True)
    envs.reset(seed=0)
    obs, _ = envs.reset(seed=1)
    still = towards(obs, (0, 0, 0))
    for _ in range(3):
        envs.step(still)
    assert envs.stats()["restarts"] == 1


def test_a_scene_without_room_is_drawn_again(make):
    envs = make(num_envs=1, fault="boundary@reset:4")
    envs.reset(seed=0)
    assert envs.stats()["restarts"] == 0


def test_half_of_the_actions_invalid(make):
    envs = make(num_envs=1, fault="invalid")
    obs, _ = envs.reset(seed=0)
    flags = [bool(envs.step(towards(obs, (0, 0, 0)))[4]["invalid_action"][0]) for _ in range(4)]
    assert flags == [True, False, True, False] and envs.stats()["restarts"] == 0


@pytest.mark.parametrize(
    ("fault", "says"),
    [("launch_fail", "Could not launch CoppeliaSim"), ("handle_missing", "does not exist")],
)
def test_a_simulator_that_does_not_start_is_told(make, fault, says):
    with pytest.raises(WorkerDied, match=says):
        make(num_envs=2, fault=fault)
    with pytest.raises(BadConfig, match="'jaco', whose model RLBench cannot load"):
        make(num_envs=1, robot_setup="jaco", arm_mode="joint_velocity")


def test_a_dead_display_is_named_before_x_ends_the_process(make, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":4711")
    monkeypatch.setenv("MANIPLE_PER_PROCESS_XVFB", "0")
    with pytest.raises(ManipleError, match="DISPLAY is :4711, where no X server listens"):
        make(num_envs=1, cameras=("front",), image_size=(8, 8))
    make(num_envs=1).reset(seed=0)  # Without cameras nobody needs one.


def test_a_missing_scene_is_named(make, tmp_path, monkeypatch):
    package = tmp_path / "site" / "rlbench"
    shutil.copytree(STANDIN / "v120" / "rlbench", package)
    (package / "task_ttms").mkdir()
    monkeypatch.syspath_prepend(str(package.parent))
    with pytest.raises(BadConfig, match=r"open_drawer.ttm is missing"):
        make(num_envs=1)


def test_an_invalid_step_costs_nothing_by_default(make):
    envs = make(num_envs=1, fault="invalid")
    obs, _ = envs.reset(seed=0)
    reward = envs.step(towards(obs, (0, 0, 0)))[1]
    assert reward[0] == 0.0 and not np.signbit(reward[0])


def test_workers_do_not_draw_with_a_thread_per_core(coppelia, monkeypatch):
    monkeypatch.delenv("LP_NUM_THREADS", raising=False)
    options = recipe("OpenDrawer", {"backend": "rlbench"}).process_options()
    assert options["environment"]["LP_NUM_THREADS"] == "1"
    monkeypatch.setenv("LP_NUM_THREADS", "3")
    options = recipe("OpenDrawer", {"backend": "rlbench"}).process_options()
    assert options["environment"]["LP_NUM_THREADS"] == "3"


def test_training_begins_with_settings_that_can_be_learned(coppelia):
    """Steps of the tip, the objects' state, and no expert, who plays on MuJoCo only."""
    config = preset("sac", "OpenDrawer", "rlbench")
    assert config.env.control == "delta_ee" and not config.env.observations
    assert preset("sac", "EmptyDishwasher", "rlbench").env.control == "delta_position"
    bc = preset("bc", "OpenDrawer", "rlbench")
    assert bc.demos.demos == config.demos.demos == 0 and bc.env.control is None


def test_a_reset_stops_no_other_row_in_training(coppelia):
    """Evaluation begins every episode itself, and would reset twice."""
    config = preset("sac", "OpenDrawer", "rlbench").replace(num_envs=2)
    for made, expected in ((make_training_envs, "mask"), (make_envs, "block")):
        envs = made(config, 2)
        assert envs._engine.config.on_reset == expected
        envs.reset(seed=0)
        envs.close()


def test_both_backends_observe_the_same(make):
    """By default, name by name; only the length of the objects' state differs."""
    real, _ = make(num_envs=1).reset(seed=0)
    ours, _ = maniple.make_vec("OpenDrawer", 1).reset(seed=0)
    assert {n: a.shape for n, a in real.items() if n != "task_low_dim_state"} == {
        n: a.shape for n, a in ours.items() if n != "task_low_dim_state"
    }
    assert "task_low_dim_state" in real and "task_low_dim_state" in ours
