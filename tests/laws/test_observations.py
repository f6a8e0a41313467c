"""Laws of what is observed: meanings are told, and proprioception is the robot's own."""

import mujoco
import numpy as np
import pytest
from conftest import near_actions

from maniple.core.errors import BadConfig, UnknownName
from maniple.core.spec import IMAGE_KINDS
from maniple.envs.config import EnvConfig
from maniple.envs.panda.table import PandaTask
from maniple.envs.rlbench.config import ARM_MODES, CAMERAS, STATES, USUAL, RLBenchConfig
from maniple.envs.rlbench.config import IMAGE_KINDS as RLBENCH_KINDS
from maniple.envs.rlbench.contract import contract
from maniple.envs.so101.reach import Reach
from maniple.envs.task_recipe import TaskRecipe
from maniple.registry import TASKS, find, recipe
from maniple.sim.control.control import CONTROLS

EVERY = pytest.mark.parametrize("task", sorted(TASKS))


@EVERY
def test_every_number_has_a_meaning(task):
    """Observations, pictures included, and the action say units, frame and order."""
    camera = find(task).cameras[0]
    made = recipe(task, {"cameras": (camera,), "image_kinds": IMAGE_KINDS}).contract()
    for name, spec in (*made.observation.items(), *made.action.items()):
        assert spec.meaning, name
        if spec.image is None and "pose" in name:
            assert "wxyz" in spec.meaning or "xyzw" in spec.meaning, name


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("task", ["so101/Reach-v0", "panda/ReachTarget-v0"])
def test_every_control_has_a_meaning(task, control):
    meaning = recipe(task, {"control": control}).contract().action["action"].meaning
    assert any(unit in meaning for unit in ("rad", "(m)", " m,")), meaning
    assert control in ("raw", "joint", "delta_joint") or "gripper" in meaning


@pytest.mark.parametrize("mode", ARM_MODES)
def test_every_number_of_rlbench_has_a_meaning(mode):
    config = RLBenchConfig(
        "OpenDrawer", arm_mode=mode, observations=STATES, cameras=CAMERAS, image_kinds=RLBENCH_KINDS
    )
    made = contract(config, low_dim=3)
    assert all(spec.meaning for spec in (*made.observation.values(), *made.action.values()))


@EVERY
def test_proprioception_is_the_robots_own(task):
    """It is observed, and stays as it is when everything but the robot is moved."""
    kind = find(task)
    group = recipe(task, all_seen(task)).group(2, 1)
    assert kind.proprioception and set(kind.proprioception) < set(group.contract.observation)
    group.reset(np.arange(2), [5, 5])
    group.report()
    before = {name: array.copy() for name, array in group._out.obs.arrays.items()}
    move_objects(group, row=1)
    group.report()
    after = group._out.obs.arrays
    for name in kind.proprioception:
        assert np.array_equal(after[name], before[name]), name
    assert any(not np.array_equal(after[name][1], before[name][1]) for name in before)
    group.close()


def all_seen(task):
    """Settings with which a task shows everything: some show less by themselves."""
    return {"observations": "all"} if getattr(find(task), "defaults", None) else {}


def test_a_policy_on_pictures_runs_on_both_backends():
    """What it sees besides is observed by default on CoppeliaSim too."""
    assert set(PandaTask.proprioception) <= set(USUAL)


def move_objects(group, row):
    """Put free bodies, joints and mocap bodies elsewhere, and take another variation."""
    model, state = group.model, group.state
    for joint in range(model.njnt):
        if model.joint(joint).name in group.task.robot.all_joints:
            continue
        at, kind = int(model.jnt_qposadr[joint]), int(model.jnt_type[joint])
        is_free = kind == int(mujoco.mjtJoint.mjJNT_FREE)
        state.qpos[row, at] += 0.05 if is_free else 0.01
        if is_free:
            state.qpos[row, at + 3 : at + 7] = [0.0, 0.0, 0.0, 1.0]
    if model.nmocap:
        state.bind("mocap_pos")[row] += 0.05
    if group.task.variations > 1:
        variation = state.note("variation")
        variation[row] = (variation[row] + 1) % group.task.variations
    group.sim.settle(np.array([row]))


def test_cameras_without_proprioception_are_refused():
    """A policy on pictures would be shown the objects' true poses."""
    bare = type("Bare", (Reach,), {"proprioception": ()})
    TaskRecipe(bare, EnvConfig()).contract()
    with pytest.raises(BadConfig, match="Bare has cameras but no `proprioception`"):
        TaskRecipe(bare, EnvConfig(cameras=("front",))).contract()
    wrong = type("Wrong", (Reach,), {"proprioception": ("tip_poss",)})
    with pytest.raises(UnknownName, match="Did you mean tip_pos"):
        TaskRecipe(wrong, EnvConfig(cameras=("front",))).contract()


def test_random_poses_are_mostly_possible(make_vec):
    """Of uniform ones 4 % lie in the workspace, so that the laws saw an arm at rest."""
    envs = make_vec("panda/OpenDrawer-v0", 16, terminate_on_success=False)
    obs, _ = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    start = obs["gripper_pose"][:, :3].copy()
    for _ in range(20):
        obs, *_, info = envs.step(near_actions(envs, obs, rng))
    assert info["invalid_actions"].mean() < 10
    assert np.linalg.norm(obs["gripper_pose"][:, :3] - start, axis=1).min() > 0.01


def test_one_number_is_a_square_picture():
    """On both backends; a size of nothing is still refused."""
    assert EnvConfig(image_size=64).image_size == (64, 64)
    assert RLBenchConfig("reach_target", image_size=64).image_size == (64, 64)
    for size in (0, -1, True, 64.0):
        with pytest.raises(BadConfig, match="image_size"):
            EnvConfig(image_size=size)
