"""Tasks in the per-environment form."""

import gymnasium
import numpy as np
import pytest
from conftest import same
from gymnasium.spaces import Box, Dict
from gymnasium.utils.env_checker import check_env

import maniple
from maniple import ExtendedTask
from maniple.core.errors import BadConfig, BadModel

XML = """
<mujoco>
  <worldbody>
    <light pos="0 0 2"/>
    <body name="pole" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.05"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


class Swing(ExtendedTask):
    """Swing a pole."""

    ACTION_SPACE = Box(-1, 1, (1,), np.float64)
    OBSERVATION_SPACE = Dict({"angle": Box(-100, 100, (1,), np.float64), "tip": Box(-5, 5, (3,))})
    SUBSTEPS = 5

    def initialize_episode(self, physics, rng):
        physics.data.qpos[:] = rng.uniform(-1, 1)

    def get_observation(self, physics):
        tip = physics.named.data.body("pole").xipos.astype(np.float32)
        return {"angle": physics.data.qpos.copy(), "tip": tip}

    def get_reward(self, physics):
        return float(np.cos(physics.data.qpos[0]))

    def get_termination(self, physics):
        return abs(physics.data.qpos[0]) > 2

    def get_sim_metadata(self):
        return {"who": "swing"}


@pytest.fixture
def swing(tmp_path):
    path = tmp_path / "swing.xml"
    path.write_text(XML)
    Swing.XML_PATH = path
    maniple.register("tests/Swing-v0", Swing)
    return "tests/Swing-v0"


def test_it_is_an_environment_like_any_other(swing):
    env = gymnasium.make(swing, render_mode="rgb_array", width=64, height=48)
    check_env(env.unwrapped, skip_close_check=True)
    env.close()


def test_engines_agree(swing, make_vec):
    told = []
    for engine in ("serial", "native"):
        envs = make_vec(swing, 3, engine=engine, max_episode_steps=6)
        rng = np.random.default_rng(0)
        told.append([envs.reset(seed=2)])
        told[-1] += [envs.step(rng.uniform(-1, 1, (3, 1))) for _ in range(20)]
    assert same(*told)


def test_sim_state_goes_on(swing, make_vec):
    env = gymnasium.make(swing).unwrapped
    env.reset(seed=0)
    env.step(np.array([0.5]))
    state = env.sim_state
    assert state["sim_metadata"] == {"who": "swing"}
    first = [env.step(np.array([0.3]))[:4] for _ in range(10)]
    env.sim_state = state
    assert same(first, [env.step(np.array([0.3]))[:4] for _ in range(10)])


def test_observations_are_current(swing):
    env = gymnasium.make(swing).unwrapped
    env.reset(seed=0)
    for _ in range(5):
        obs, *_ = env.step(np.array([1.0]))
        x = -0.25 * np.sin(obs["angle"][0])
        assert obs["tip"][0] == pytest.approx(x, abs=1e-6)


def test_missing_and_broken_models_are_named(swing, tmp_path):
    Swing.XML_PATH = tmp_path / "nowhere.xml"
    with pytest.raises(BadModel, match=r"nowhere\.xml"):
        maniple.make(swing)
    Swing.XML_PATH = tmp_path / "broken.xml"
    Swing.XML_PATH.write_text("<mujoco><worldbody><geom/></worldbody>")
    with pytest.raises(BadModel, match=r"broken\.xml"):
        maniple.make(swing)


def test_a_wrong_observation_is_named(swing, monkeypatch):
    wrong = {"angle": np.zeros(2), "tip": np.zeros(3, np.float32)}
    monkeypatch.setattr(Swing, "get_observation", lambda self, physics: wrong)
    with pytest.raises(BadConfig, match=r"'angle' with shape \(2,\)"):
        maniple.make(swing).reset(seed=0)
