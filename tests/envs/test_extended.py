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


NAN = float("nan")


def spoilt(what, is_bad):
    """Register a task that returns NaN when `is_bad(physics)`; made here, it travels by value."""

    class Spoilt(Swing):
        XML_PATH = str(Swing.XML_PATH)  # Equal to the parent's it would be left out.

    def get(self, physics):
        found = getattr(Swing, what)(self, physics)
        if not is_bad(physics):
            return found
        return NAN if what == "get_reward" else {**found, "angle": np.array([NAN])}

    setattr(Spoilt, what, get)
    maniple.register("tests/Spoilt-v0", Spoilt)
    return "tests/Spoilt-v0"


ENGINES = [{"engine": "native"}, {"engine": "serial"}, {"engine": "process", "workers": 2}]


@pytest.mark.parametrize("what", ["get_observation", "get_reward"])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e["engine"])
def test_nan_is_a_truncated_row(swing, make_vec, what, engine):
    task = spoilt(what, lambda physics: physics.data.ctrl[0] > 0.9)
    envs = make_vec(task, 3, **engine)
    before, _ = envs.reset(seed=0)
    action = np.array([[0.1], [1.0], [0.1]])
    obs, reward, terminated, truncated, info = envs.step(action)
    assert truncated.tolist() == [False, True, False] and not terminated.any()
    assert reward[1] == 0 and np.isfinite(reward).all()
    assert same({k: v[1] for k, v in obs.items()}, {k: v[1] for k, v in before.items()})
    assert info["_env_error"].tolist() == [False, True, False]
    for part in ("row 1", "seed 1", "step 1", "last action [1.]"):
        assert part in info["env_error"][1]
    obs, _, _, truncated, info = envs.step(np.full((3, 1), 0.1))
    assert not truncated.any() and "env_error" not in info
    assert all(np.isfinite(v).all() for v in obs.values())


@pytest.mark.parametrize("what", ["get_observation", "get_reward"])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e["engine"])
def test_nan_at_the_first_reset_is_named(swing, make_vec, what, engine):
    envs = make_vec(spoilt(what, lambda physics: True), 2, **engine)
    for _ in range(2):
        with pytest.raises(BadConfig, match="Spoilt fails at its first reset: row 0: the"):
            envs.reset(seed=0)
