"""Many rows of single steps are run lean: nothing but the time it takes may show it."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from conftest import same

import maniple
from maniple.core.errors import BadConfig, UnknownName
from maniple.envs.so101.lerobot import TABLE_M, LeRobot
from maniple.envs.task_model import build_model
from maniple.sim.scene import add_table
from maniple.sim.simulation import MANY, Simulation

TASK = "LeRobot-v0"
ROWS = MANY + 2


def is_lean(envs) -> bool:
    return not envs._engine._autoresets[0].group.sim.batch.persistent


@pytest.fixture(params=[False, True], ids=["plain", "randomised"])
def pair(request, make_vec):
    """The same rows twice: lean, and each by itself."""
    settings = {"max_episode_steps": 9, "randomize": request.param}
    lean = make_vec(TASK, ROWS, engine="native", **settings)
    alone = make_vec(TASK, ROWS, engine="serial", **settings)
    assert is_lean(lean) and not is_lean(alone)
    assert same(lean.reset(seed=3), alone.reset(seed=3))
    return lean, alone


def test_every_row_has_the_bits_of_a_single_one(pair) -> None:
    """Through the ends of episodes, resets of a few rows, and chunks."""
    lean, alone = pair
    rng = np.random.default_rng(0)
    for k in range(14):
        if k == 5:
            options = {"reset_mask": np.arange(ROWS) % 7 == 0}
            assert same(lean.reset(options=dict(options)), alone.reset(options=dict(options)))
        actions = rng.uniform(-1, 1, (ROWS, 6))
        assert same(lean.step(actions), alone.step(actions)), k
    chunk = rng.uniform(-1, 1, (ROWS, 12, 6))
    assert same(lean.step_chunk(chunk), alone.step_chunk(chunk))


def test_states_travel_between_both(pair) -> None:
    """Where everything is, too; and a row goes on in the other kind of engine."""
    lean, alone = pair
    rng = np.random.default_rng(1)
    for _ in range(4):
        actions = rng.uniform(-1, 1, (ROWS, 6))
        lean.step(actions), alone.step(actions)
    states = lean.get_attr("sim_state")
    assert same(states, alone.get_attr("sim_state"))
    assert np.abs(states[0]["xpos"]).sum() > 1.0
    for envs in pair:
        envs.reset(seed=99)
        envs.set_attr("sim_state", list(reversed(states)))
    actions = rng.uniform(-1, 1, (ROWS, 6))
    assert same(lean.step(actions), alone.step(actions))


def test_pictures_show_the_present(make_vec) -> None:
    """A row's picture is that of a single environment in the same state."""
    lean, alone = make_vec(TASK, ROWS), make_vec(TASK, 1)
    lean.reset(seed=0), alone.reset(seed=0)
    row = lean._engine._autoresets[0].group.row(5)
    first = row.render(64, 48).copy()
    for _ in range(60):
        lean.step(np.ones((ROWS, 6))), alone.step(np.ones((1, 6)))
    now = row.render(64, 48)
    assert not np.array_equal(now, first)
    assert np.array_equal(now, alone.call("render", 64, 48)[0])


def test_a_row_pushed_to_nan(make_vec, capfd) -> None:
    """It is told and taken out; its neighbours are untouched."""
    lean, twin = make_vec(TASK, ROWS), make_vec(TASK, ROWS)
    lean.reset(seed=0), twin.reset(seed=0)
    actions = np.random.default_rng(0).uniform(-1, 1, (ROWS, 6))
    lean.step(actions), twin.step(actions)
    lean._engine._autoresets[0].group.state.qpos[100, 3] = np.nan
    obs, _, _, truncated, info = lean.step(actions)
    want = twin.step(actions)[0]
    assert np.flatnonzero(truncated).tolist() == [100]
    assert "row 100" in info["env_error"][100]
    others = np.arange(ROWS) != 100
    assert all(np.array_equal(obs[name][others], want[name][others]) for name in obs)
    capfd.readouterr()


class Curious(LeRobot):
    """Read something that was not announced."""

    def observe(self, s):
        return super().observe(s) | {"speed": s.bind("cvel")[:, 1]}


class Honest(Curious):
    """Announce it."""

    reads = ("cvel",)


@pytest.mark.parametrize("rows", [1, ROWS])
def test_what_is_read_must_be_announced(rows: int) -> None:
    """With few rows as with many, so that nobody finds out late."""
    maniple.register("tests/Curious-v0", Curious)
    maniple.register("tests/Honest-v0", Honest)
    with pytest.raises(BadConfig, match=r"'cvel' undeclared: add it to the task's `reads`"):
        maniple.make_vec("tests/Curious-v0", rows)
    envs = maniple.make_vec("tests/Honest-v0", rows)
    assert not is_lean(envs)
    envs.reset(seed=0)
    obs, *_ = envs.step(np.ones((rows, 6)))
    assert obs["speed"].shape == (rows, 6)
    envs.close()


def test_several_substeps_are_not_lean(make_vec) -> None:
    """What MuJoCo remembers is read again within the step then: it pays to keep it."""
    assert not is_lean(make_vec(TASK, ROWS, action_repeat=2))
    assert not is_lean(make_vec("so101/Reach-v0", ROWS))


class Bare(LeRobot):
    """Have no mocap body, and hardly any state besides positions."""

    def scene(self, spec):
        add_table(spec, TABLE_M, (0.45, 0.45))


@pytest.mark.parametrize("rows", [1, ROWS])
def test_a_state_without_mocap_bodies(rows: int) -> None:
    """An empty part of the state is a part of the state."""
    maniple.register("tests/Bare-v0", Bare)
    envs = maniple.make_vec("tests/Bare-v0", rows)
    envs.reset(seed=0)
    states = envs.get_attr("sim_state")
    assert states[0]["mocap_pos"].shape == (0, 3)
    envs.set_attr("sim_state", states)
    envs.close()


@pytest.fixture
def sims():
    """The same rows, lean and not."""
    task = LeRobot()
    model = build_model(task)
    made = Simulation(model, MANY, 2, 1, task.reads), Simulation(model, MANY, 2, 1)
    assert [sim.batch.persistent for sim in made] == [False, True]
    return made


def test_goals_are_followed(sims) -> None:
    """Bodies that are moved by hand, in some rows, with a settling and with a step."""
    rows = np.arange(MANY)
    seen = []
    for sim in sims:
        places = sim.bind("xpos")
        sim.clear(rows)
        sim.settle(rows)
        begun = places.copy()
        sim.bind("mocap_pos")[:, 0, 0] = 0.01 * rows
        sim.settle(rows[::3])
        settled = places.copy()
        sim.bind("ctrl")[:] = 0.5
        sim.step(rows % 2 == 0)
        seen.append((begun, settled, places.copy(), sim.data(78).xpos.copy(), sim.bind("qpos")))
    assert same(seen[0], seen[1])
    assert not same(seen[0][0], seen[0][1]) and not same(seen[0][1], seen[0][2])


def test_forces_bound_late_are_those_of_the_last_step(sims) -> None:
    """They cannot be worked out afterwards."""
    forces = []
    for sim in sims:
        sim.bind("ctrl")[:] = 0.5
        sim.step()
        forces.append(sim.bind("qfrc_actuator").copy())
    assert same(*forces) and np.abs(forces[0]).max() > 0.1


def test_asking_again_costs_nothing(sims, monkeypatch) -> None:
    """Every row's state asks for places: they are worked out once."""
    lean, _ = sims
    lean.bind("xpos")
    monkeypatch.setattr(lean._kinematics, "follow", lambda rows=None: pytest.fail("once more"))
    assert lean.bind("xpos") is lean.bind("xpos")


@pytest.mark.parametrize("rows", [1, MANY])
def test_all_rows_have_one_shape(rows: int) -> None:
    """With `reads`, a position in the model cannot differ by row; a mass can."""
    sim = Simulation(build_model(LeRobot()), rows, 1, 1, ())
    sim.expand("body_mass")
    with pytest.raises(BadConfig, match="'geom_pos' by row"):
        sim.expand("geom_pos")


def test_reads_are_checked() -> None:
    """A typo would turn leanness off and nobody would know."""
    model = build_model(LeRobot())
    with pytest.raises(UnknownName, match="Did you mean site_xpos"):
        Simulation(model, 1, 1, 1, ("sitexpos",))
    assert not Simulation(model, MANY, 1, 1, ("qpos", "site_xpos")).batch.persistent
    asleep = build_model(LeRobot())
    asleep.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    assert Simulation(asleep, MANY, 1, 1, ()).batch.persistent
