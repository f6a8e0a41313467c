"""Evaluation plays every episode once, whatever the number of rows, and wastes none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import maniple
from maniple.agents.sac import SACConfig
from maniple.learn.config import TrainConfig
from maniple.learn.loop import train
from maniple.learn.policy import load_policy
from maniple.run.evaluation import FIRST_SEED, evaluate


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """A policy that solves some episodes early and others never."""
    folder = tmp_path_factory.mktemp("run") / "run"
    config = TrainConfig.of(
        max_steps=3_000, eval_n_trajs=0, torch_threads=1, agent=SACConfig(hidden=(64, 64))
    )
    train(config, folder)
    return load_policy(folder)


class Counted:
    """Environments that count how many row steps are asked of them."""

    def __init__(self, envs):
        self._envs, self.row_steps = envs, 0

    def __getattr__(self, name):
        return getattr(self._envs, name)

    def step(self, actions):
        self.row_steps += self._envs.num_envs
        return self._envs.step(actions)


def test_the_result_does_not_depend_on_the_number_of_rows(policy):
    """Returns are equal to the bit on 1, 5, 16 and 40 rows."""
    results = []
    for rows in (1, 5, 16, 40):
        envs = policy.envs(rows)
        results.append(evaluate(envs, policy.act, 20))
        envs.close()
    lengths = set(results[0].lengths)
    assert len(lengths) > 2, "episodes of different lengths are what this is about"
    assert all(result == results[0] for result in results)
    assert results[0].seeds == [FIRST_SEED + k for k in range(20)]


def test_no_row_waits_for_a_slower_one(policy):
    """All row steps but those of the last episodes are counted ones."""
    envs = Counted(policy.envs(4))
    result = evaluate(envs, policy.act, 40)
    envs.close()
    wasted = envs.row_steps - sum(result.lengths)
    # After the last episode has begun, three rows can be idle for at most its length.
    assert wasted <= 3 * max(result.lengths)


def test_an_action_does_not_depend_on_who_acts_beside(policy):
    """To the bit: one row alone, or among a hundred in another order."""
    rng = np.random.default_rng(5)
    obs = {n: rng.normal(size=(100, *s.shape)).astype(s.dtype) for n, s in policy.layout.items()}
    whole = policy.act(obs)
    order = rng.permutation(100)
    assert np.array_equal(policy.act({n: a[order] for n, a in obs.items()}), whole[order])
    assert np.array_equal(policy.act({n: a[:1] for n, a in obs.items()}), whole[:1])


def test_a_loaded_policy_says_what_it_needs(policy):
    """Other observations may be absent; one of its own may not."""
    envs = policy.envs(3)
    obs, _ = envs.reset(seed=1)
    envs.close()
    needed = {name: obs[name] for name in policy.needs}
    assert np.array_equal(policy.act({**obs, "more": 1}), policy.act(needed))
    assert policy.act(needed).shape == (3, 4)
    del needed[policy.needs[0]]
    with pytest.raises(maniple.core.errors.BadConfig, match="looks at"):
        policy.act(needed)


def test_load_policy_is_public(policy):
    """By the run's folder or by one checkpoint."""
    run: Path = policy.checkpoint.path.parent.parent
    again = maniple.load_policy(run)
    obs = {n: np.zeros((2, *s.shape), s.dtype) for n, s in policy.layout.items()}
    assert np.array_equal(again.act(obs), policy.act(obs))
    assert maniple.load_policy(str(policy.checkpoint.path)).checkpoint.step == 3_008
