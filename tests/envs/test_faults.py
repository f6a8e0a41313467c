"""A row that breaks is reported and reset alone."""

import numpy as np
import pytest
from conftest import same

import maniple
from maniple import Task
from maniple.envs.so101.reach import Reach

TASK = "so101/LiftCube-v0"


def poke(envs, row):
    """Push one row's state to NaN, as a bug in a simulator would."""
    envs._engine._autoresets[0].group.state.qpos[row, 3] = np.nan


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_row_pushed_to_nan(make_vec, mode, capfd):
    envs, twin = make_vec(TASK, 3, autoreset_mode=mode), make_vec(TASK, 3, autoreset_mode=mode)
    actions = np.random.default_rng(0).uniform(-1, 1, (6, 3, 4)).astype(np.float32)
    envs.reset(seed=40), twin.reset(seed=40)
    last, *_ = envs.step(actions[0])
    twin.step(actions[0])
    poke(envs, 1)
    obs, reward, term, trunc, info = envs.step(actions[1])
    want = twin.step(actions[1])
    assert trunc.tolist() == [False, True, False] and not term.any() and reward[1] == 0
    told = info if mode == "NextStep" else info["final_info"]
    message = told["env_error"][1]
    assert told["_env_error"].tolist() == [False, True, False]
    for part in ("row 1", "seed 41", "step 2", "last action [", "position became NaN"):
        assert part in message
    shown = {k: v[1] for k, v in obs.items()} if mode == "NextStep" else info["final_obs"][1]
    assert same(shown, {k: v[1] for k, v in last.items()}), "the last good observation"
    others = np.array([0, 2])
    for k in range(2, 6):
        assert all(np.array_equal(obs[n][others], want[0][n][others]) for n in obs)
        assert np.array_equal(reward[others], want[1][others])
        obs, reward, _, trunc, info = envs.step(actions[k])
        want = twin.step(actions[k])
        assert not trunc.any() and "env_error" not in info
    assert all(np.isfinite(v).all() for v in obs.values())
    capfd.readouterr()


def test_a_fault_inside_a_chunk(make_vec, capfd):
    envs = make_vec(TASK, 2)
    before, _ = envs.reset(seed=0)
    poke(envs, 0)
    obs, _, _, trunc, info = envs.step_chunk(np.zeros((2, 4, 4), np.float32))
    assert trunc.tolist() == [True, False]
    assert info["num_steps"].tolist() == [1, 4]
    assert np.array_equal(obs["tip_pos"][0], before["tip_pos"][0])
    capfd.readouterr()


class Broken(Reach):
    """Return NaN in one row after a while."""

    def terms(self, s):
        terms = super().terms(s)
        terms["near"] = np.where(s.qpos[:, 0] > 0.1, np.nan, terms["near"])
        return terms


def test_nan_in_a_users_reward_is_a_fault_too():
    maniple.register("tests/Broken-v0", Broken)
    envs = maniple.make_vec("tests/Broken-v0", 2)
    envs.reset(seed=0)
    aside = np.zeros((2, 4), np.float32)
    aside[1, 1] = -1.0
    for _ in range(12):
        _, reward, _, trunc, info = envs.step(aside)
        assert np.isfinite(reward).all()
        if trunc.any():
            break
    assert trunc.tolist() == [False, True]
    assert "the reward is not finite" in info["env_error"][1]
    envs.close()


class Sick(Reach):
    """Row 1 is NaN from its second step on, whatever is done to it."""

    steps = 0

    def observe(self, s):
        seen = dict(super().observe(s))
        seen["extra"] = np.zeros((s.rows, 1))
        seen["extra"][1:2] = np.nan if self.steps > 1 else 0.0
        return seen

    def after_step(self, s, active):
        self.steps += 1


def test_nan_that_stays_is_that_rows_own_business():
    """The row is taken out again and again; the others never notice."""
    maniple.register("tests/Sick-v0", Sick)
    envs = maniple.make_vec("tests/Sick-v0", 3)
    envs.reset(seed=0)
    idle = np.zeros((3, 4), np.float32)
    truncated = [envs.step(idle)[3].tolist() for _ in range(6)]
    assert [False, True, False] in truncated
    assert all(not row[0] and not row[2] for row in truncated)
    for _ in range(3):
        obs, reward, _, _, info = envs.step_chunk(np.repeat(idle[:, None], 4, axis=1))
        assert info["num_steps"].tolist() in ([4, 0, 4], [4, 1, 4])
        assert np.isfinite(reward).all() and all(np.isfinite(v).all() for v in obs.values())
    envs.close()


class Unscaled(Task):
    """Forget a scale."""

    def scene(self, spec): ...

    def observe(self, s):
        return {"q": s.qpos}

    def terms(self, s):
        return {"speed": s.qvel[:, 0]}


def test_a_term_without_a_scale_is_named():
    maniple.register("tests/Unscaled-v0", Unscaled)
    with pytest.raises(maniple.core.errors.BadConfig, match="'speed'"):
        maniple.make_vec("tests/Unscaled-v0")
