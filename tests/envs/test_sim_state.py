"""sim_state: copies, complete, and enough to go on bit for bit."""

import gymnasium
import numpy as np
import pytest
from conftest import listed, same

from maniple.core.errors import BadConfig, NoDisplay
from maniple.registry import TASKS


@pytest.mark.parametrize("task", listed(TASKS))
@pytest.mark.parametrize("randomize", [False, True])
def test_going_back_gives_the_same_bits(task, randomize):
    env = gymnasium.make(task, randomize=randomize).unwrapped
    env.reset(seed=1)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (25, *env.action_space.shape)).astype(env.action_space.dtype)
    for action in actions[:10]:
        env.step(action)
    state = env.sim_state
    first = [env.step(a) for a in actions[10:]]
    elsewhere = gymnasium.make(task, randomize=randomize).unwrapped
    elsewhere.reset(seed=99)
    for other in (env, elsewhere):
        other.sim_state = state
        assert same(first, [other.step(a) for a in actions[10:]])
        other.close()


def test_states_are_copies_and_redraw_the_moment():
    env = gymnasium.make("LeRobot-v0", render_mode="rgb_array", width=80, height=60).unwrapped
    env.reset(seed=0)
    states, pictures = [], []
    for _ in range(4):
        for _ in range(30):
            env.step(np.full(6, 0.8))
        states.append(env.sim_state)
        pictures.append(env.render())
    assert not np.array_equal(states[0]["qpos"], states[3]["qpos"])
    elsewhere = gymnasium.make("LeRobot-v0", render_mode="rgb_array", width=80, height=60).unwrapped
    for state, picture in zip(states, pictures, strict=True):
        elsewhere.sim_state = state
        assert np.array_equal(elsewhere.render(), picture)
    wanted = ["time", "qpos", "qvel", "xpos", "xquat", "mocap_pos", "mocap_quat", "sim_metadata"]
    assert set(wanted) <= set(states[0])
    env.close(), elsewhere.close()


def test_a_state_of_another_task_is_refused():
    one, other = (gymnasium.make(t).unwrapped for t in ("LeRobot-v0", "so101/Reach-v0"))
    one.reset(seed=0), other.reset(seed=0)
    with pytest.raises(BadConfig, match="another task"):
        one.sim_state = other.sim_state


def test_a_window_without_a_display_says_what_to_do(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    env = gymnasium.make("LeRobot-v0").unwrapped
    env.reset(seed=0)
    with pytest.raises(NoDisplay, match="rgb_array"):
        env.render_to_window()
