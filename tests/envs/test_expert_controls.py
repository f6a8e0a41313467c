"""The Panda's experts act by poses, or by steps that a learner can draw at random."""

import numpy as np
import pytest

import maniple
from maniple.core.errors import BadConfig
from maniple.sim.rotation import quat_mul, rotation_vector, small_turn
from maniple.view.policies import task_expert

ROWS = 8


def solved(task, control, steps=100):
    """Part of the first episodes that the expert solves."""
    envs = maniple.make_vec(task, ROWS, control=control)
    expert = maniple.expert(task, ROWS, control)
    obs, _ = envs.reset(seed=911)
    has_ended, is_solved = np.zeros(ROWS, bool), np.zeros(ROWS, bool)
    for _ in range(steps):
        obs, _, terminated, truncated, info = envs.step(expert.act(obs))
        is_solved |= info["success"] & ~has_ended
        has_ended |= terminated | truncated
        expert.reset(terminated | truncated)
    envs.close()
    return is_solved.mean()


@pytest.mark.parametrize("control", ["ik", "delta_ee", "delta_position"])
def test_the_same_expert_speaks_three_controls(control):
    assert solved("push_button", control) == 1.0


def test_turned_things_need_turned_hands():
    assert solved("open_drawer", "delta_ee") == 1.0
    assert solved("open_drawer", "delta_position") < 0.5


def test_increments_stay_in_range():
    envs = maniple.make_vec("open_drawer", ROWS, control="delta_ee")
    expert = maniple.expert("open_drawer", ROWS, "delta_ee")
    obs, _ = envs.reset(seed=3)
    for _ in range(40):
        action = expert.act(obs)
        assert envs.action_space.contains(action) and set(np.unique(action[:, -1])) <= {-1.0, 1.0}
        obs = envs.step(action)[0]
    envs.close()


def test_an_expert_says_what_it_cannot_speak():
    with pytest.raises(BadConfig, match="acts by ik, delta_ee, delta_position, not by 'planning'"):
        maniple.expert("push_button", 1, "planning")
    with pytest.raises(BadConfig, match="acts by 'ee', not by 'joint'"):
        maniple.expert("so101/Reach-v0", 1, "joint")


def test_rotation_vectors_undo_small_turns():
    turn = np.array([[0.1, -0.2, 0.05], [0.0, 0.0, 0.0], [-0.3, 0.1, 0.2]])
    quat = small_turn(turn)
    back = rotation_vector(-quat)  # The same orientation.
    assert np.allclose(small_turn(back), quat, atol=0.01)
    half = np.array([np.cos(0.25), 0, 0, np.sin(0.25)])
    assert np.allclose(rotation_vector(quat_mul(half, half)), [0, 0, 1.0])


def test_the_page_offers_the_expert_whatever_the_control():
    envs = maniple.make_vec("push_button", 2, control="delta_position")
    obs, _ = envs.reset(seed=0)
    script = task_expert("push_button", envs, obs)
    assert script is not None and envs.action_space.contains(script.act(obs))
    envs.close()
