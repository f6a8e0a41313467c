"""get_state and set_state: the same verbs and the same bits in every engine."""

import gymnasium
import numpy as np
import pytest
from conftest import same

from maniple.core.errors import BadConfig, ClosedError, ResetNeeded

TASK = "so101/Reach-v0"
ENGINES = [
    pytest.param({"engine": "native"}, id="native"),
    pytest.param({"engine": "serial"}, id="serial"),
    pytest.param({"engine": "process", "workers": 2}, id="process"),
]


def actions(steps, rows):
    return np.random.default_rng(0).uniform(-1, 1, (steps, rows, 4)).astype(np.float32)


def rows_of(obs, rows):
    return {name: array[rows] for name, array in obs.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_going_back_gives_the_same_bits(make_vec, engine):
    envs = make_vec(TASK, 5, **engine)
    envs.reset(seed=3)
    plan = actions(8, 5)
    for action in plan[:3]:
        envs.step(action)
    states = envs.get_state()
    assert len(states) == 5 and same(states, envs.get_attr("sim_state"))
    assert same(states, envs.call("sim_state"))
    first = [envs.step(a)[:4] for a in plan[3:]]
    envs.set_state(states)
    assert same(first, [envs.step(a)[:4] for a in plan[3:]])
    elsewhere = make_vec(TASK, 5)
    elsewhere.reset(seed=77)
    elsewhere.set_attr("sim_state", states)
    assert same(first, [elsewhere.step(a)[:4] for a in plan[3:]])


@pytest.mark.parametrize("engine", ENGINES)
def test_some_rows_in_any_order(make_vec, engine):
    envs, twin = make_vec(TASK, 5, **engine), make_vec(TASK, 5, **engine)
    envs.reset(seed=3), twin.reset(seed=3)
    plan = actions(2, 5)
    states = envs.get_state([4, 1])
    everything = envs.get_state()
    assert same(list(states), [everything[4], everything[1]])
    want, *_ = twin.step(plan[1])
    envs.step(plan[0]), twin.step(plan[0])
    want_others, *_ = twin.step(plan[1])
    envs.set_state(states, rows=[4, 1])
    obs, *_ = envs.step(plan[1])
    assert same(rows_of(obs, [1, 4]), rows_of(want, [1, 4]))
    # The others went on; a twin took one action more before, so only their clocks are compared.
    assert envs.get_attr("elapsed_steps") == (2, 1, 2, 2, 1)
    assert not same(rows_of(obs, [0]), rows_of(want_others, [0]))
    # One state for several rows: all of them stand where row 4 stood.
    envs.set_state(states[0], rows=[0, 2])
    assert envs.get_attr("elapsed_steps") == (0, 1, 0, 2, 1)
    assert envs.get_attr("np_random_seed")[:3] == (7, 4, 7)


@pytest.mark.parametrize("engine", ENGINES)
def test_disabled_autoreset_waits_where_the_state_did(make_vec, engine):
    envs = make_vec(TASK, 3, autoreset_mode="Disabled", max_episode_steps=3, **engine)
    envs.reset(seed=0)
    plan = actions(4, 3)
    early = envs.get_state()
    for action in plan[:3]:
        *_, truncated, _ = envs.step(action)
    assert truncated.all()
    late = envs.get_state()
    assert [s["counters"]["has_ended"] for s in (*early, *late)] == [False] * 3 + [True] * 3
    envs.set_state([early[0], early[1]], rows=[0, 1])
    with pytest.raises(ResetNeeded, match=r"Rows \[2\]"):
        envs.step(plan[3])
    envs.set_state(early[2], rows=[2])
    envs.step(plan[3])
    envs.set_state(late)
    with pytest.raises(ResetNeeded, match=r"Rows \[0, 1, 2\]"):
        envs.step(plan[3])


@pytest.mark.parametrize("engine", ENGINES)
def test_an_ended_row_is_reset_as_it_would_have_been(make_vec, engine):
    envs = make_vec(TASK, 2, max_episode_steps=3, **engine)
    envs.reset(seed=0)
    plan = actions(6, 2)
    for action in plan[:3]:
        envs.step(action)
    states = envs.get_state()
    first = [envs.step(a)[:4] for a in plan[3:]]
    envs.set_state(states)
    assert same(first, [envs.step(a)[:4] for a in plan[3:]])


@pytest.mark.parametrize("engine", ENGINES)
def test_environments_without_a_state_say_so(make_vec, engine):
    envs = make_vec("CartPole-v1", 2, **engine)
    envs.reset(seed=0)
    with pytest.raises(BadConfig, match="cannot save or restore their state"):
        envs.get_state()
    with pytest.raises(BadConfig, match="cannot save or restore their state"):
        envs.set_state({}, rows=[1])
    with pytest.raises(BadConfig, match="cannot save or restore their state"):
        envs.set_attr("sim_state", [{}, {}])
    envs.step(envs.action_space.sample())


def test_a_hosted_task_of_ours_has_a_state(make_vec):
    envs = make_vec(lambda: gymnasium.make(TASK), 2, engine="process", workers=2)
    envs.reset(seed=0)
    states = envs.get_state()
    envs.step(actions(1, 2)[0])
    envs.set_state(states)
    assert [s["counters"]["elapsed_steps"] for s in envs.get_state()] == [0, 0]


@pytest.mark.parametrize("rows", [[], [0, 0], [-1], [2], [[0]]])
def test_wrong_rows_are_named(make_vec, rows):
    envs = make_vec(TASK, 2)
    envs.reset(seed=0)
    with pytest.raises(BadConfig, match="rows"):
        envs.get_state(rows)
    with pytest.raises(BadConfig, match=r"got 3 states for 2 rows"):
        envs.set_state([{}] * 3)


def test_closed_and_sent(make_vec):
    envs = make_vec(TASK, 2, engine="process", workers=2)
    envs.reset(seed=0)
    envs.send(actions(1, 1)[0], rows=[1])
    with pytest.raises(BadConfig, match="recv"):
        envs.get_state()
    with pytest.raises(BadConfig, match="recv"):
        envs.get_attr("elapsed_steps")
    assert envs.get_state([0])[0]["counters"]["elapsed_steps"] == 0
    rows, _ = envs.recv()
    assert rows.tolist() == [1]
    assert envs.get_attr("elapsed_steps") == (0, 1)
    envs.close()
    with pytest.raises(ClosedError):
        envs.get_state()


class Rattle(gymnasium.Env):
    """Draw from np_random in every step, and count how often its info is pickled."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    pickled = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=1), {}

    def step(self, action):
        return self.np_random.normal(size=1), 0.0, False, False, {"counted": Counted()}


class Counted:
    def __reduce__(self):
        Rattle.pickled += 1
        return (Counted, ())


def test_infos_are_pickled_once(make_vec):
    envs = make_vec(Rattle, 1, engine="process", workers=1)
    envs.reset(seed=0)
    for _ in range(3):
        *_, info = envs.step(np.zeros((1, 1), np.float32))
        assert type(info["counted"][0]).__name__ == "Counted"
    assert envs.get_attr("pickled") == (3,)


@pytest.mark.parametrize("task", [TASK, Rattle])
def test_np_random_is_the_same_in_every_engine(make_vec, task):
    told = []
    for options in ({"engine": "native"}, {"engine": "process", "workers": 1}):
        envs = make_vec(task, 2, **options)
        seen = [envs.reset(seed=5)[0]]
        action = np.zeros(envs.action_space.shape, np.float32)
        drawn = []
        for _ in range(2):
            one, other = envs.np_random, envs.get_attr("np_random")
            drawn.append([generator.random(3) for generator in (*one, *other)])
            # What was read is the reader's own, and goes on there.
            drawn.append([generator.random(3) for generator in (*one, *other)])
            seen.append(envs.step(action)[0])
        told.append((drawn, seen))
    assert same(*told)
    drawn = told[0][0]
    assert same(drawn[0][:2], drawn[0][2:]), "reading again begins where the row is"
    assert not same(drawn[0][:2], drawn[1][:2])
