"""Robots as data: no gripper, two arms, a base that moves; chosen by name."""

import mujoco
import numpy as np
import pytest

import maniple
from maniple.core.errors import BadConfig, UnknownName
from maniple.envs.config import EnvConfig
from maniple.envs.task import Task
from maniple.envs.task_recipe import TaskRecipe
from maniple.registry import TASKS, find
from maniple.sim.robots.robot import GripperRange, Robot
from maniple.sim.robots.so101 import SO101
from maniple.sim.robots.table import ROBOTS, find_robot

HINGE, SLIDE = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE


def _add_joint(spec, body, name, kind, axis, between=(-2.0, 2.0)):
    joint = body.add_joint(name=name, type=kind, axis=axis, range=between)
    joint.damping.flat[0] = 1.0
    servo = spec.add_actuator(
        name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrlrange=between
    )
    servo.set_to_position(kp=60.0, kv=6.0)


def _add_arm(spec, parent, pos, prefix=""):
    body = parent
    for k in range(2):
        body = body.add_body(pos=pos if k == 0 else (0, 0, 0.2))
        body.gravcomp = 1.0
        body.add_geom(size=[0.02, 0.02, 0.08], pos=[0, 0, 0.1], type=mujoco.mjtGeom.mjGEOM_BOX)
        _add_joint(spec, body, f"{prefix}joint{k}", HINGE, [0, 1, 0])
    body.add_site(name=f"{prefix}tip", pos=[0, 0, 0.2])
    return body


def add_poker(spec, pos):
    _add_arm(spec, spec.worldbody, pos)


def add_mobile(spec, pos):
    base = spec.worldbody.add_body(name="chassis", pos=pos)
    base.gravcomp = 1.0
    base.add_geom(size=[0.2, 0.2, 0.05], type=mujoco.mjtGeom.mjGEOM_BOX)
    _add_joint(spec, base, "base_x", SLIDE, [1, 0, 0])
    _add_joint(spec, base, "base_y", SLIDE, [0, 1, 0])
    _add_joint(spec, base, "base_yaw", HINGE, [0, 0, 1])
    for side, y in (("left_", 0.1), ("right_", -0.1)):
        hand = _add_arm(spec, base, (0, y, 0.1), side)
        finger = hand.add_body(pos=[0, 0, 0.2])
        finger.gravcomp = 1.0
        finger.add_geom(size=[0.01, 0.01, 0.01], type=mujoco.mjtGeom.mjGEOM_BOX)
        _add_joint(spec, finger, f"{side}finger", SLIDE, [0, 1, 0], (0.0, 0.04))


POKER = Robot("poker", add_poker, {"arm": ("joint0", "joint1")}, (0.3, -0.2), {"arm": "tip"})
MOBILE = Robot(
    "mobile",
    add_mobile,
    groups={
        "left_arm": ("left_joint0", "left_joint1"),
        "right_arm": ("right_joint0", "right_joint1"),
        "left_gripper": ("left_finger",),
        "right_gripper": ("right_finger",),
        "base": ("base_x", "base_y", "base_yaw"),
    },
    home=(0.3, -0.2, 0.1, 0.2, 0.04, 0.02, 0.5, -0.5, 0.4),
    tips={"left_arm": "left_tip", "right_arm": "right_tip"},
    grippers={"left_gripper": GripperRange(0.0, 0.04), "right_gripper": GripperRange(0.0, 0.04)},
    base="planar",
)


class Stand(Task):
    """Stand there."""

    robot = POKER
    robots = None
    control = "joint"
    has_success = False
    scales = {"one": 1.0}  # noqa: RUF012

    def scene(self, spec):
        spec.worldbody.add_camera(name="front", pos=[0, -1, 0.5])

    def observe(self, s):
        return {"qpos": s.qpos, "ctrl": s.ctrl}

    def terms(self, s):
        return {"one": np.ones(s.rows)}


@pytest.mark.parametrize("robot", [POKER, MOBILE], ids=["no gripper", "two arms on a planar base"])
@pytest.mark.parametrize("control", ["joint", "delta_joint", "joint_position", "joint_velocity"])
def test_joint_controllers_drive_every_group(robot, control):
    """It is built and homed, and each action number moves its own joint towards the target."""
    task = type("Here", (Stand,), {"robot": robot})
    group = TaskRecipe(task, EnvConfig(control=control)).group(2, 1)
    group.reset(np.arange(2), [0, 1])
    qpos = group.state.qpos
    at = [int(group.model.joint(name).qposadr[0]) for name in robot.all_joints]
    assert np.allclose(qpos[:, at], robot.home)
    before = qpos[:, at].copy()
    spec = group.motion.control.action
    low, high = spec.bounds()
    assert spec.meaning and all(name in spec.meaning for name in robot.plain_joints)
    action = np.where(
        np.arange(spec.size) % 2, low + 0.25 * (high - low), low + 0.75 * (high - low)
    )
    actions = np.tile(action.astype(spec.dtype), (2, 1))
    for _ in range(25):
        group.step(actions)
    assert (np.abs(qpos[:, at] - before) > 5e-3).all(), "every joint of every group has moved"
    group.close()


def test_a_control_of_one_hand_says_what_it_needs():
    with pytest.raises(BadConfig, match="left_arm, right_arm on a planar base"):
        TaskRecipe(type("Here", (Stand,), {"robot": MOBILE}), EnvConfig(control="ik")).group(1, 1)


@pytest.mark.parametrize(("control", "size"), [("ee", 3), ("ik", 7), ("delta_position", 3)])
def test_without_a_gripper_an_action_has_no_number_for_it(control, size):
    group = TaskRecipe(Stand, EnvConfig(control=control)).group(1, 1)
    assert group.motion.control.action.shape == (size,)
    group.reset(np.arange(1), [0])
    group.step(np.zeros((1, size), np.float32))


def test_robots_by_name():
    for name in ROBOTS:
        assert find_robot(name).name == name
    assert find_robot(SO101) is SO101
    assert find_robot("maniple.sim.robots.panda:PANDA").name == "panda"
    with pytest.raises(UnknownName, match="Did you mean panda"):
        find_robot("pandas")
    named = type("Named", (Stand,), {"robot": "panda"})
    assert named.robot is find_robot("panda")


@pytest.mark.parametrize("name", ROBOTS)
def test_an_option_selects_the_robot(name):
    """A task that takes any robot is built, homed and driven with each of the table."""
    maniple.register("tests/Stand-v0", Stand)
    envs = maniple.make_vec("tests/Stand-v0", 2, robot=name)
    obs, _ = envs.reset(seed=0)
    home = find_robot(name).home
    assert np.allclose(obs["qpos"][:, : len(home)], home)
    assert envs.single_action_space.shape == (len(home),)
    envs.close()


def test_a_task_that_cannot_take_a_robot_says_so():
    for task, robot in (("so101/Reach-v0", "panda"), ("panda/OpenDrawer-v0", "so101")):
        with pytest.raises(BadConfig, match=f"cannot take the robot '{robot}'"):
            maniple.make_vec(task, 1, robot=robot)
        maniple.make_vec(task, 1, robot=find(task).robot.name).close()
    assert all(find(task).robot.name in ROBOTS for task in TASKS if not task.startswith("tests/"))
