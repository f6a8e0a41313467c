"""Other people's code takes our single environment as it is."""

import gymnasium
import numpy as np
import pytest

import maniple  # noqa: F401  (registers the ids)


def test_stable_baselines3():
    pytest.importorskip("stable_baselines3", reason="pip install -c constraints.txt -e '.[peers]'")
    from stable_baselines3 import SAC
    from stable_baselines3.common.env_checker import check_env
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = gymnasium.make("so101/Reach-v0")
    check_env(env.unwrapped, warn=False)
    envs = DummyVecEnv([lambda: gymnasium.make("so101/Reach-v0")] * 2)
    model = SAC("MultiInputPolicy", envs, learning_starts=20, batch_size=16, buffer_size=500)
    model.learn(60)
    action, _ = model.predict(envs.reset())
    assert action.shape == (2, 4)


def test_pufferlib():
    emulation = pytest.importorskip("pufferlib.emulation", reason="its sdist builds with network")
    env = emulation.GymnasiumPufferEnv(env_creator=lambda: gymnasium.make("so101/Reach-v0"))
    obs, _ = env.reset(seed=0)
    for _ in range(3):
        obs, reward, *_ = env.step(np.zeros(4, np.float32))
    assert np.isfinite(reward) and obs is not None
