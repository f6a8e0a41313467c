"""send and recv: act on whoever is ready."""

import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import maniple
from maniple.core.errors import BadConfig


class Slow(gymnasium.Env):
    """Counts, and takes as many milliseconds for a step as its action says."""

    observation_space = spaces.Box(0, 1e6, (1,), np.float32)
    action_space = spaces.Box(0, 1000, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        time.sleep(float(action[0]) / 1000)
        return np.full(1, self.count, np.float32), float(action[0]), False, False, {}


@pytest.fixture
def envs():
    made = maniple.make_vec(Slow, 4, engine="process", workers=2)
    made.reset(seed=0)
    yield made
    made.close()


def column(*values):
    return np.array(values, np.float32)[:, None]


def test_the_quick_ones_come_first(envs):
    envs.send(column(300, 0, 0, 0))
    rows, (obs, reward, term, trunc, _) = envs.recv(min_rows=2)
    assert rows.tolist() == [2, 3] and obs.ravel().tolist() == [1, 1]
    assert reward.tolist() == [0, 0] and not (term | trunc).any()
    envs.send(column(1, 1), rows)
    rows, (obs, *_) = envs.recv()
    assert rows.tolist() == [2, 3] and obs.ravel().tolist() == [2, 2]
    rows, (obs, reward, *_) = envs.recv()
    assert rows.tolist() == [0, 1] and obs.ravel().tolist() == [1, 1]
    assert reward.tolist() == [300, 0]


def test_all_at_once_and_then_plain_steps(envs):
    for k in range(1, 4):
        envs.send(column(0, 0, 0, 0))
        rows, (obs, *_) = envs.recv(min_rows=4)
        assert rows.tolist() == [0, 1, 2, 3] and (obs == k).all()
    envs.send(column(0, 0), [0, 1])
    envs.recv()
    obs, *_ = envs.step(column(0, 0, 0, 0))
    assert obs.ravel().tolist() == [5, 5, 4, 4]


def test_mistakes(envs):
    with pytest.raises(BadConfig, match=r"rows \[1\] are missing"):
        envs.send(column(0), [0])
    with pytest.raises(BadConfig, match="different row numbers"):
        envs.send(column(0, 0), [1, 1])
    with pytest.raises(BadConfig, match="there are 4"):
        envs.send(column(0, 0), [3, 4])
    with pytest.raises(BadConfig, match="only 0 were sent"):
        envs.recv()
    envs.send(column(0, 0), [0, 1])
    with pytest.raises(BadConfig, match="on their way already"):
        envs.send(column(0, 0), [0, 1])
    with pytest.raises(BadConfig, match="recv"):
        envs.step(column(0, 0, 0, 0))
    envs.recv()
    native = maniple.make_vec("so101/Reach-v0", 2)
    native.reset()
    with pytest.raises(BadConfig, match="engine='process'"):
        native.send(np.zeros((2, 4)))


def test_a_worker_that_dies_on_the_way(envs):
    envs.send(column(200, 0, 0, 0))
    rows, _ = envs.recv(2)
    assert rows.tolist() == [2, 3]
    envs._engine._handles[0].kill()
    rows, (obs, _, _, trunc, info) = envs.recv(2)
    assert rows.tolist() == [0, 1] and trunc.all()
    assert "SIGKILL" in info["worker_restarted"][0]
    envs.send(column(0, 0), rows)
    _, (obs, *_) = envs.recv(2)
    assert (obs == 0).all()
