"""Kinematics, controllers and the batch."""

import mujoco
import numpy as np
import pytest

import maniple
from maniple.sim.control.ik import Kinematics
from maniple.sim.robots.so101 import SO101
from maniple.sim.rotation import euler_mat, look_quat, quat_yaw, turn_between, yaw_quat


def arm(rows):
    return Kinematics(SO101, (0.0, 0.0, 0.0), rows, 1)


def test_published_anchor_of_the_tip():
    """At q = 0 the fingertips are where the published kinematics has them."""
    tip, turn = arm(1).forward(np.zeros((1, 5)))
    assert tip[0] == pytest.approx([0.39136, 0.0, 0.243], abs=1e-9)
    assert np.allclose(turn[0], np.eye(3))


def test_jacobian_is_the_derivative():
    kinematics = arm(8)
    q = np.random.default_rng(0).uniform(-0.5, 0.5, (8, 5))
    tip, turn = kinematics.forward(q)
    jac = kinematics.jacobian(tip)
    h = 1e-6
    for joint in range(5):
        moved, turned = kinematics.forward(q + h * np.eye(5)[joint])
        assert np.allclose((moved - tip) / h, jac[:, :3, joint], atol=1e-4)
        assert np.allclose(turn_between(turn, turned) / h, jac[:, 3:, joint], atol=1e-4)


def test_ik_reaches_what_is_reachable():
    rng = np.random.default_rng(1)
    goal = rng.uniform([0.16, -0.10, 0.01], [0.27, 0.10, 0.12], (300, 3))
    kinematics = arm(300)
    start = np.tile(SO101.home[:5], (300, 1))
    down = euler_mat(SO101.down_rpy)
    q = kinematics.solve(start, goal, down, turn_weight=0.05, iterations=15, position_first=3)
    tip, _ = kinematics.forward(q)
    assert np.percentile(np.linalg.norm(tip - goal, axis=1), 99) < 0.001
    assert (q >= kinematics.low).all() and (q <= kinematics.high).all()


def test_ee_action_moves_the_tip_by_its_step():
    envs = maniple.make_vec("so101/Reach-v0", 1, terminate_on_success=False)
    obs, _ = envs.reset(seed=0)
    start = obs["tip_pos"][0].copy()
    for _ in range(4):
        envs.step(np.array([[0.0, 0.5, 0.0, 0.0]], np.float32))
    for _ in range(6):
        obs, *_ = envs.step(np.zeros((1, 4), np.float32))
    assert obs["tip_pos"][0] - start == pytest.approx([0, 0.024, 0], abs=0.002)


@pytest.mark.parametrize("control", ["joint", "delta_joint", "ee"])
def test_every_control_can_be_chosen(control):
    env = maniple.make("so101/LiftCube-v0", control=control)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(20):
        _, reward, *_ = env.step(env.action_space.sample())
    assert np.isfinite(reward)
    assert env.action_space.shape == ((4,) if control == "ee" else (6,))


def test_derived_fields_are_current():
    """The fingertip belongs to the joint positions beside it, not to those of a step before."""
    envs = maniple.make_vec("so101/Reach-v0", 3)
    obs, _ = envs.reset(seed=0)
    kinematics = arm(3)
    for _ in range(10):
        obs, *_ = envs.step(np.random.default_rng(0).uniform(-1, 1, (3, 4)))
        tip, _ = kinematics.forward(obs["joint_pos"][:, :5].astype(float))
        assert np.allclose(tip, obs["tip_pos"], atol=1e-5)


def test_randomisation_changes_the_physics_of_its_row_only():
    envs = maniple.make_vec("so101/LiftCube-v0", 3, randomize=True)
    envs.reset(seed=0)
    models = envs.get_attr("model")
    masses = [m.body("cube").mass[0] for m in models]
    assert len(set(masses)) == 3
    nominal = maniple.make("so101/LiftCube-v0").unwrapped._group.model.body("cube").mass[0]
    assert all(0.7 * nominal <= m <= 1.3 * nominal for m in masses)
    kept = models[1].geom_friction.copy()
    envs.reset(options={"reset_mask": np.array([True, False, False])})
    again = envs.get_attr("model")
    assert np.array_equal(again[1].geom_friction, kept)
    assert not np.array_equal(again[0].geom_friction, models[0].geom_friction)
    assert not np.array_equal(again[0].geom_rgba, models[0].geom_rgba)


def test_rotations():
    yaw = np.linspace(-3, 3, 7)
    assert np.allclose(quat_yaw(yaw_quat(yaw)), yaw)
    mat = np.zeros(9)
    mujoco.mju_quat2Mat(mat, look_quat((1.0, 2.0, 3.0), (0.0, 0.0, 0.0)))
    assert np.allclose(mat.reshape(3, 3)[:, 2], np.array([1, 2, 3]) / np.sqrt(14))
