"""Laws over everything registered: a new task is tested by being in the table."""

import gymnasium
import numpy as np
import pytest
from conftest import listed, near_actions, same
from gymnasium.utils.env_checker import check_env

import maniple
from maniple.registry import EXPERTS, TASKS

TASK = pytest.mark.parametrize("task", listed(TASKS))
STATEFUL = pytest.mark.parametrize("task", listed(EXPERTS))
SEES_ALL = {"observations": "all"}
"""Experts may look at what a task does not show by itself."""
MODES = pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])


def rollout(envs, steps, seed=3, act_seed=5, mode="NextStep"):
    """Everything that a vector environment returns while random actions are taken."""
    rng = np.random.default_rng(act_seed)
    results = [envs.reset(seed=seed)]
    for k in range(steps):
        result = envs.step(near_actions(envs, results[-1][0], rng))
        results.append(result)
        if k == 2:
            results.append(reset_one(envs, result[0]))
        ended = result[2] | result[3]
        if mode == "Disabled" and ended.any():
            results.append(envs.reset(options={"reset_mask": ended}))
    return results


def reset_one(envs, obs):
    """Reset one row in the middle of all episodes; the others stay where they are."""
    mask = np.arange(envs.num_envs) == 1
    before = {name: array.copy() for name, array in obs.items()}
    result = envs.reset(options={"reset_mask": mask})
    assert all(np.array_equal(result[0][name][~mask], before[name][~mask]) for name in before)
    assert "worker_restarted" not in result[1]
    assert envs.get_attr("elapsed_steps") == tuple(0 if is_new else 3 for is_new in mask)
    return result


@TASK
def test_check_env(task):
    """Gymnasium's own checker has no complaint."""
    env = gymnasium.make(task, render_mode="rgb_array", width=64, height=48)
    check_env(env.unwrapped, skip_close_check=True)
    env.close()


@TASK
@MODES
def test_engines_agree(task, mode, make_vec):
    """Serial, native and process give the same bits for the same seed, at any thread count."""
    options = {"max_episode_steps": 7, "autoreset_mode": mode}
    want = rollout(make_vec(task, 5, engine="serial", **options), 20, mode=mode)
    for threads in (1, 2, 3):
        envs = make_vec(task, 5, engine="native", threads=threads, **options)
        assert same(want, rollout(envs, 20, mode=mode))
    envs = make_vec(task, 5, engine="process", workers=2, **options)
    assert same(want, rollout(envs, 20, mode=mode))


@STATEFUL
def test_engines_agree_when_randomised(task, make_vec):
    """Domain randomisation belongs to the row's seed, not to the batch."""
    options = {"max_episode_steps": 7, "randomize": True}
    want = rollout(make_vec(task, 4, engine="serial", **options), 18)
    for engine in ("native", "process"):
        assert same(want, rollout(make_vec(task, 4, engine=engine, **options), 18))


@TASK
def test_single_env_is_a_row(task, make_vec):
    """gymnasium.make(id) seeded like row i is row i."""
    envs = make_vec(task, 3, max_episode_steps=50)
    env = gymnasium.make(task, max_episode_steps=50)
    (obs, _), (single, _) = envs.reset(seed=10), env.reset(seed=12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert all(np.array_equal(obs[k][2], single[k]) for k in single)
        actions = near_actions(envs, obs, rng)
        obs, reward, *_ = envs.step(actions)
        single, single_reward, *_ = env.step(actions[2])
        assert reward[2] == single_reward
    env.close()


@TASK
def test_observations_are_inside_the_space(task, make_vec):
    """After reset and under random actions."""
    envs = make_vec(task, 8)
    obs, _ = envs.reset(seed=0)
    assert envs.observation_space.contains(obs)
    rng = np.random.default_rng(0)
    for _ in range(30):
        obs, *_ = envs.step(near_actions(envs, obs, rng))
        assert envs.observation_space.contains(obs)


@TASK
def test_a_thousand_random_actions(task, make_vec, capfd):
    """No NaN, no fault, no warning of MuJoCo's; 250 in each of four rows."""
    envs = make_vec(task, 4)
    obs, _ = envs.reset(seed=1)
    rng = np.random.default_rng(1)
    for _ in range(250):
        obs, reward, *_, info = envs.step(near_actions(envs, obs, rng))
        assert np.isfinite(reward).all() and "env_error" not in info
    assert all(np.isfinite(v).all() for v in obs.values())
    assert "WARNING" not in capfd.readouterr().err


@TASK
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("engine", ["native", "process"])
def test_a_chunk_equals_its_steps(task, mode, engine, make_vec):
    """step_chunk(K) is K steps, up to each row's end; a waiting row only resets."""
    envs = make_vec(task, 3, max_episode_steps=5, autoreset_mode=mode, engine=engine)
    twins = [make_vec(task, 1, max_episode_steps=5, autoreset_mode="Disabled") for _ in range(3)]
    obs, _ = envs.reset(seed=2)
    for row, twin in enumerate(twins):
        twin.reset(seed=2 + row)
    rng = np.random.default_rng(3)
    waits = [False] * 3
    for _ in range(6):
        actions = near_actions(envs, obs, rng, chunk=(4,))
        obs, reward, term, trunc, info = envs.step_chunk(actions)
        for row, twin in enumerate(twins):
            want = _walk(twin, actions[row], waits[row])
            assert info["num_steps"][row] == want["steps"]
            assert (reward[row], term[row], trunc[row]) == want["result"]
            shown = {name: value[row] for name, value in obs.items()}
            has_ended = term[row] or trunc[row]
            if mode == "SameStep" and has_ended:
                assert same(info["final_obs"][row], want["obs"])
                want["obs"] = _first_row(twin.reset()[0])
            waits[row] = has_ended and mode == "NextStep"
            assert same(shown, want["obs"])


def _first_row(obs):
    return {name: value[0] for name, value in obs.items()}


def _walk(twin, actions, waits):
    """Do with plain steps what a chunk promises for one row."""
    if waits:
        return {"obs": _first_row(twin.reset()[0]), "steps": 0, "result": (0.0, False, False)}
    total = 0.0
    for taken, action in enumerate(actions, start=1):  # noqa: B007
        obs, reward, term, trunc, _ = twin.step(action[None])
        total += reward[0]
        if term[0] or trunc[0]:
            break
    return {"obs": _first_row(obs), "steps": taken, "result": (total, term[0], trunc[0])}


@STATEFUL
def test_no_episode_begins_solved(task, make_vec):
    """Neither at the start nor after one random action, in 150 episodes."""
    envs = make_vec(task, 50, **SEES_ALL)
    rng = np.random.default_rng(7)
    for seed in (0, 1000, 2000):
        obs, info = envs.reset(seed=seed)
        assert not info["success"].any()
        *_, info = envs.step(near_actions(envs, obs, rng))
        assert not info["success"].any()


@STATEFUL
def test_expert_solves_it(task, make_vec):
    """At least 95 % of 60 episodes, 90 % on the Panda; 'slow' has the 200 of the closing note."""
    assert success_rate(make_vec(task, 20, **SEES_ALL), task, 60) >= least(task)


@STATEFUL
@pytest.mark.slow
@pytest.mark.parametrize("randomize", [False, True])
def test_expert_solves_200(task, randomize, make_vec):
    """As many of 200 episodes, with and without domain randomisation."""
    rate = success_rate(make_vec(task, 50, randomize=randomize, **SEES_ALL), task, 200)
    assert rate >= least(task) - 0.1 * (randomize and task.startswith("panda/"))


@STATEFUL
def test_random_policy_fails(task, make_vec):
    """Below 10 %, below 30 % for reaching, 5 % on the Panda: success is no accident."""
    if task.startswith("panda/"):
        # Its physics costs ten times as much: fewer and shorter episodes.
        envs = make_vec(task, 25, max_episode_steps=60)
        assert success_rate(envs, task, 25, random=True) < 0.05
        return
    rate = success_rate(make_vec(task, 50), task, 100, random=True)
    assert rate < (0.30 if "Reach" in task else 0.10)


def least(task):
    return 0.90 if task.startswith("panda/") else 0.95


def success_rate(envs, task, episodes, random=False):
    expert = maniple.expert(task, envs.num_envs)
    rng = np.random.default_rng(0)
    obs, _ = envs.reset(seed=100)
    counted = np.zeros(envs.num_envs, int)
    each = episodes // envs.num_envs
    wins = 0
    while (counted < each).any():
        actions = near_actions(envs, obs, rng) if random else expert.act(obs)
        obs, _, term, trunc, info = envs.step(actions)
        ended = term | trunc
        # Every row counts its first episodes only: quick successes must not crowd out the rest.
        wins += int((info["success"] & ended & (counted < each)).sum())
        counted += ended
        expert.reset(ended)
    return wins / (each * envs.num_envs)
