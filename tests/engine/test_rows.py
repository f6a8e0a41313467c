"""What one row does or says never changes, loses or hides what another one does."""

import copy
import os
import signal
import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import maniple
from maniple.core.errors import BadConfig, ClosedError, WorkerDied
from maniple.core.info import add_row_infos
from maniple.core.space import layout_of

ENGINES = ["serial", "native", "process"]


class Counting(gymnasium.Env):
    """Counts steps; fails to reset, ends or stops as class attributes and actions say."""

    observation_space = spaces.Box(0, 1e6, (1,), np.float32)
    action_space = spaces.Box(0, 100, (1,), np.float32)

    def __init__(self):
        self.count, self.is_reset, self.broken, self.given = 0, False, False, []

    def reset(self, *, seed=None, options=None):
        self.given.append((seed, options))
        self.is_reset, self.count = False, 0
        if self.broken or (options or {}).get("break"):
            raise ValueError("no reset today")
        self.is_reset = True
        info = (options or {}).get("info", {})
        return np.zeros(1, np.float32), info

    def step(self, action):
        assert self.is_reset, "stepped without a reset"
        self.count += 1
        if action[0] == 9:
            os.kill(os.getpid(), signal.SIGSTOP)
        done = action[0] == 5
        return np.full(1, self.count, np.float32), 1.0, bool(done), False, {"n": self.count}


class Stubborn(Counting):
    """Every reset but the first few fails, in every copy of it that is made."""

    resets = 0

    def reset(self, *, seed=None, options=None):
        Stubborn.resets += 1
        self.broken = 2 <= Stubborn.resets <= 4
        return super().reset(seed=seed, options=options)


def zeros(rows):
    return np.zeros((rows, 1), np.float32)


# Deadlines in recv.


def test_a_stopped_worker_is_noticed_although_others_suffice():
    envs = maniple.make_vec(Counting, 2, engine="process", workers=2, step_timeout_s=1.0)
    envs.reset(seed=0)
    envs.send(np.array([[9], [0]], np.float32))
    start, seen = time.monotonic(), None
    while seen is None and time.monotonic() - start < 10:
        rows, (_, _, _, trunc, info) = envs.recv(min_rows=1)
        if 0 in rows:
            seen = trunc[list(rows).index(0)], info
            break
        time.sleep(0.02)
        envs.send(zeros(len(rows)), rows)
    assert (
        seen is not None and seen[0] and "gave no answer in 1 s" in seen[1]["worker_restarted"][0]
    )
    assert time.monotonic() - start < 4
    envs.close()


# Failed resets.


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_whose_reset_fails_stays_ended(engine):
    """It is told at every step, tried again at every step, and never stepped in between."""
    Stubborn.resets = 0
    envs = maniple.make_vec(Stubborn, 1, engine=engine)
    envs.reset(seed=0)
    _, _, term, _, _ = envs.step(zeros(1) + 5)
    assert term[0]
    for _ in range(3):
        obs, reward, term, trunc, info = envs.step(zeros(1))
        assert trunc[0] and not term[0] and reward[0] == 0
        assert "no reset today" in info["env_error"][0]
        assert obs[0, 0] == 1, "the last good observation"
    obs, _, _, trunc, info = envs.step(zeros(1))
    assert not trunc[0] and obs[0, 0] == 0 and "env_error" not in info
    obs, _, _, trunc, _ = envs.step(zeros(1))
    assert not trunc[0] and obs[0, 0] == 1
    envs.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_reset_that_fails_when_asked_for(engine, mode):
    envs = maniple.make_vec(Counting, 3, engine=engine, autoreset_mode=mode)
    envs.reset(seed=0)
    envs.step(zeros(3))
    mask = np.array([False, True, False])
    _, info = envs.reset(options={"reset_mask": mask, "break": True})
    assert info["_env_error"].tolist() == mask.tolist()
    if mode == "Disabled":
        with pytest.raises(maniple.core.errors.ResetNeeded):
            envs.step(zeros(3))
        envs.reset(options={"reset_mask": mask})
        obs, *_, info = envs.step(zeros(3))
        assert obs.ravel().tolist() == [2, 1, 2]
    else:
        obs, _, _, trunc, info = envs.step(zeros(3))
        assert obs.ravel().tolist() == [2, 0, 2] and not trunc.any() and "env_error" not in info
        obs, *_, info = envs.step(zeros(3))
        assert obs.ravel().tolist() == [3, 1, 3] and "env_error" not in info
    envs.close()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("info", [5, "text", ["a"]])
def test_an_info_that_is_no_dict_is_the_rows_own_fault(engine, info):
    envs = maniple.make_vec(Counting, 2, engine=engine)
    _, told = envs.reset(seed=0, options={"info": info})
    assert told["_env_error"].all() and "no dict" in told["env_error"][0]
    assert "worker_restarted" not in told
    envs.step(zeros(2))
    envs.close()


# Infos and names.


@pytest.mark.parametrize(
    "values",
    [
        (2, 2.7),
        (2.7, 2),
        (True, 3),
        ("abc", "abcdefgh"),
        (np.array("abc"), np.array("abcdefgh")),
        (1, "text"),
        (1, {"a": 1}),
        ({"a": 1}, 1),
        ({"a": 1}, {"a": 2.5}),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(2, np.int32), np.full(2, 0.5)),
        (np.float32(0.5), np.float64(0.1)),
        (np.int8(3), np.int64(2**40)),
        (1, 2**70),
        (2**70, 1),
        (None, 1),
        (1, None),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_infos_arrive_as_they_were(values, together):
    info = {}
    said = {row: {"x": value} for row, value in enumerate(values)}
    for part in [said] if together else [{row: each} for row, each in said.items()]:
        add_row_infos(info, part, 3)
    assert info["_x"].tolist() == [True, True, False]
    for row, value in enumerate(values):
        found = info["x"]
        if isinstance(found, dict):
            found = {key: found[key] for key in value}
            assert {key: column[row] for key, column in found.items()} == value
        else:
            assert np.array_equal(found[row], value), (found, value)


def test_infos_leave_masks_of_others_alone():
    everyone = np.ones(2, bool)
    info = {"x": np.zeros(2), "_x": everyone, "y": np.zeros(2), "_y": everyone}
    add_row_infos(info, {0: {"x": 1.0}}, 2)
    assert info["_y"] is everyone and everyone.all() and info["x"].tolist() == [1, 0]


def test_names_that_collide_are_refused():
    inner = spaces.Dict({"b": spaces.Box(0, 1, (1,))})
    space = spaces.Dict({"a.b": spaces.Box(0, 1, (2,)), "a": inner})
    with pytest.raises(BadConfig, match=r"both named 'a\.b'"):
        layout_of(space)
    assert list(layout_of(spaces.Dict({"a.b": spaces.Box(0, 1, (2,))}))) == ["a.b"]


def test_same_step_with_send_and_recv():
    envs = maniple.make_vec(Counting, 4, engine="process", workers=2, autoreset_mode="SameStep")
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(zeros(4))
    actions = zeros(4)
    actions[2] = 5
    envs.send(actions[[2, 3]], [2, 3])
    rows, (obs, _, term, _, info) = envs.recv(2)
    assert rows.tolist() == [2, 3] and term.tolist() == [True, False]
    assert obs.ravel().tolist() == [0, 4]
    assert info["_final_obs"].tolist() == [True, False] and info["final_obs"][0][0] == 4
    assert info["final_info"]["n"][0] == 4
    envs.send(zeros(2), [0, 1])
    _, (*_, info) = envs.recv(2)
    assert "final_obs" not in info, "of other rows, of an earlier time"
    envs.close()


class Choosing(Counting):
    """Sees a number of a few."""

    observation_space = spaces.Discrete(1000)

    def reset(self, **given):
        obs, info = super().reset(**given)
        return int(obs[0]), info

    def step(self, action):
        obs, *rest = super().step(action)
        return int(obs[0]), *rest


@pytest.mark.parametrize("engine", ENGINES)
def test_a_discrete_final_observation_is_a_number(engine):
    envs = maniple.make_vec(Choosing, 2, engine=engine, autoreset_mode="SameStep")
    envs.reset(seed=0)
    *_, info = envs.step(zeros(2) + 5)
    final = info["final_obs"][0]
    assert final == 1 and isinstance(final, np.integer) and not isinstance(final, np.ndarray)
    envs.close()


# Workers that die while nobody steps.


@pytest.fixture
def pair():
    envs = maniple.make_vec(Counting, 4, engine="process", workers=2)
    envs.reset(seed=0)
    envs.step(zeros(4))
    yield envs
    envs.close()


@pytest.mark.parametrize(
    "ask",
    [
        lambda envs: envs.get_attr("count"),
        lambda envs: envs.call("count"),
        lambda envs: envs.set_attr("count", 3),
        lambda envs: envs.call("render", np.zeros(1 << 20)),
    ],
)
@pytest.mark.parametrize("wait_s", [0.0, 0.1])
def test_a_dead_worker_is_told_replaced_and_reported(pair, ask, wait_s):
    os.kill(pair._engine._handles[0].pid, signal.SIGKILL)
    time.sleep(wait_s)
    with pytest.raises(WorkerDied, match="SIGKILL"):
        ask(pair)
    assert pair.get_attr("is_reset") == (False, False, True, True)
    obs, _, _, trunc, info = pair.step(zeros(4))
    assert trunc.tolist() == [True, True, False, False] and obs[:, 0].tolist()[:2] == [1, 1]
    assert "SIGKILL" in info["worker_restarted"][0]
    obs, _, _, trunc, info = pair.step(zeros(4))
    assert obs[:2, 0].tolist() == [0, 0] and not trunc.any()
    pair.send(zeros(4))
    _, (obs, *_) = pair.recv(4)
    assert obs[:2, 0].tolist() == [1, 1]


def test_a_dead_worker_reported_by_recv(pair):
    os.kill(pair._engine._handles[0].pid, signal.SIGKILL)
    with pytest.raises(WorkerDied):
        pair.get_attr("count")
    pair.send(zeros(4))
    rows, (obs, _, _, trunc, _) = pair.recv(4)
    assert rows.tolist() == [0, 1, 2, 3] and trunc.tolist() == [True, True, False, False]
    assert obs[:, 0].tolist() == [1, 1, 2, 2]
    pair.step(zeros(4))
    assert pair.step(zeros(4))[0][:, 0].tolist() == [1, 1, 4, 4]


@pytest.mark.parametrize("options", [{}, {"info": {"told": 1}}])
def test_a_dead_worker_is_reset_all_the_same(pair, options):
    os.kill(pair._engine._handles[0].pid, signal.SIGKILL)
    obs, info = pair.reset(seed=3, options=options)
    assert obs[:, 0].tolist() == [0] * 4
    assert "SIGKILL" in info["worker_restarted"][0] and not info["_worker_restarted"][2]
    obs, _, _, trunc, info = pair.step(zeros(4))
    assert obs[:, 0].tolist() == [1] * 4 and not trunc.any() and "worker_restarted" not in info
    assert [given[-1][0] for given in pair.get_attr("given")] == [3, 4, 5, 6]


def test_a_dead_worker_of_which_one_row_is_reset(pair):
    os.kill(pair._engine._handles[0].pid, signal.SIGKILL)
    mask = np.array([True, False, False, False])
    obs, info = pair.reset(options={"reset_mask": mask})
    assert info["_worker_restarted"].tolist() == [True, True, False, False]
    assert obs[:, 0].tolist() == [0, 1, 1, 1], "the other row shows what it showed"
    obs, *_ = pair.step(zeros(4))
    assert obs[:, 0].tolist() == [1, 0, 2, 2]


# Seeds, limits, and what other people's code asks for.


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unseeded_reset_stays_unseeded(engine):
    envs = maniple.make_vec(Counting, 2, engine=engine)
    envs.reset()
    assert [given[0][0] for given in envs.get_attr("given")] == [None, None]
    if engine == "process":
        os.kill(envs._engine._handles[0].pid, signal.SIGKILL)
        envs.step(zeros(2))
        envs.step(zeros(2))
        assert envs.get_attr("given")[0] == [(None, None)], "and so is a replacement"
    envs.close()


@pytest.mark.parametrize(("steps", "wanted"), [(1000, 1000), (7, 7), (None, 60), (-1, None)])
def test_gymnasiums_time_limit_is_the_time_limit(steps, wanted):
    env = gymnasium.make("so101/Reach-v0", max_episode_steps=steps, terminate_on_success=False)
    env.reset(seed=0)
    still = np.zeros(4, np.float32)
    ends = [env.step(still)[3] for _ in range(wanted or 100)]
    assert ends == [False] * (len(ends) - 1) + [wanted is not None]
    env.close()
    assert gymnasium.spec("so101/Reach-v0").max_episode_steps == 60


@pytest.mark.parametrize("engine", ENGINES)
def test_a_missing_attribute_is_an_attribute_error(engine):
    envs = maniple.make_vec(Counting, 2, engine=engine)
    for ask in (envs.get_attr, envs.call):
        with pytest.raises(AttributeError, match=r"no attribute 'cuont'\. Did you mean count"):
            ask("cuont")
        with pytest.raises(BadConfig):
            ask("cuont")
    envs.close()


def test_closed_is_closed_for_gymnasium_too():
    envs = maniple.make_vec("so101/Reach-v0", 2)
    envs.close()
    with pytest.raises(gymnasium.error.ClosedEnvironmentError):
        envs.reset()
    env = maniple.make("so101/Reach-v0")
    env.close()
    with pytest.raises(ClosedError):
        env.reset()
    assert isinstance(copy.copy(ClosedError("x")), ClosedError)
    assert ClosedError.__reduce__(ClosedError("x"))[0] is ClosedError


def test_errors_are_light():
    import subprocess
    import sys

    code = "import sys, maniple, maniple.core.errors; assert 'gymnasium' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_spec_of_a_vector():
    assert maniple.make_vec(Counting, 2).spec is None
    assert maniple.make_vec("so101/Reach-v0", 2).spec.id == "so101/Reach-v0"
    assert maniple.make_vec("Reach", 2, max_episode_steps=9).spec.kwargs == {"max_episode_steps": 9}
    assert gymnasium.make_vec("so101/Reach-v0", 2).spec.max_episode_steps == 60


@pytest.mark.parametrize("engine", ENGINES)
def test_unknown_reset_options(engine):
    hosted = maniple.make_vec(Counting, 1, engine=engine)
    hosted.reset(options={"anything": 3})
    assert hosted.get_attr("given")[0] == [(None, {"anything": 3})]
    hosted.close()
    ours = maniple.make_vec("so101/Reach-v0", 1, engine=engine)
    ours.reset(options={"anything": 3})
    with pytest.raises(BadConfig, match="Did you mean reset_mask"):
        ours.reset(options={"reset_maks": np.array([True])})
    ours.close()
