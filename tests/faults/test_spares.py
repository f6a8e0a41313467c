"""Spare workers take over at once; the next episode begins before it is asked for."""

import time
from pathlib import Path

import numpy as np
import pytest
from faulty import Faulty

import maniple
from maniple.core.errors import BadConfig

pytestmark = pytest.mark.alone

SLOW_S = 0.8
QUIET = np.zeros((2, 2), np.float32)
CRASH = np.array([[2, 0], [0, 0]], np.float32)
END = np.array([[77, 0], [0, 0]], np.float32)


class Slow(Faulty):
    """Takes its time to start and to reset; counts both in files."""

    def __init__(self, notes, start_s=0.0, reset_s=0.0):
        super().__init__()
        self.notes, self.reset_s = Path(notes), reset_s
        time.sleep(start_s)
        _note(self.notes / "starts")

    def reset(self, *, seed=None, options=None):
        time.sleep(self.reset_s)
        _note(self.notes / "resets")
        if (self.notes / "broken").exists():
            raise SystemExit(9)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        obs, reward, _, _, info = super().step(action)
        return obs, reward, bool(action[0] == 77), False, info


def _note(path):
    with path.open("a") as file:
        file.write("x")


def count(path):
    return len(path.read_text()) if path.exists() else 0


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def make(notes, start_s=0.0, reset_s=0.0, **options):
    def build():
        return Slow(notes, start_s, reset_s)

    return maniple.make_vec(build, 2, engine="process", workers=2, **options)


def lose_and_come_back(envs):
    """Seconds until a row whose worker crashed has its new episode."""
    start = time.perf_counter()
    info = envs.step(CRASH)[4]
    assert info["_worker_restarted"].tolist() == [True, False]
    obs = envs.step(QUIET)[0]
    assert obs["count"][:, 0].tolist()[0] == 0
    return time.perf_counter() - start


def test_a_spare_is_there_at_once(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain = make(tmp_path / "a", SLOW_S)
    plain.reset(seed=3)
    with_spare = make(tmp_path / "b", SLOW_S, spares=1)
    with_spare.reset(seed=3)
    until(lambda: count(tmp_path / "b" / "starts") == 3)
    time.sleep(0.1)
    first = with_spare.step(QUIET)[0]["count"][:, 0].tolist()
    assert first == plain.step(QUIET)[0]["count"][:, 0].tolist()
    assert lose_and_come_back(with_spare) < 0.5 * lose_and_come_back(plain)
    # The next spare is on its way, and takes the next place.
    until(lambda: count(tmp_path / "b" / "starts") == 4)
    time.sleep(0.1)
    lose_and_come_back(with_spare)
    until(lambda: count(tmp_path / "b" / "starts") == 5)
    plain.close()
    with_spare.close()


def test_an_engine_that_is_not_reset_has_no_spare(tmp_path):
    envs = make(tmp_path, spares=2)
    envs.close()
    assert count(tmp_path / "starts") == 2


def test_spares_end_with_their_engine(tmp_path):
    envs = make(tmp_path, spares=2)
    envs.reset(seed=0)
    waiting = envs._engine._pool._spares._waiting
    pids = [process.pid for process in waiting]
    assert len(pids) == 2
    envs.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_spare_that_died_is_not_taken(tmp_path):
    envs = make(tmp_path, spares=1)
    envs.reset(seed=0)
    until(lambda: count(tmp_path / "starts") == 3)
    for process in envs._engine._pool._spares._waiting:
        process.kill()
        process.has_exited(5.0)
    lose_and_come_back(envs)
    assert envs.stats()["restarts"] == 1
    envs.close()


def test_a_reset_goes_on_while_nobody_waits(tmp_path):
    envs = make(tmp_path, reset_s=0.3, reset_ahead=True, copy_obs=False)
    envs.reset(seed=0)
    before = count(tmp_path / "resets")
    last, _, terminated, _, _ = envs.step(END)
    assert terminated.tolist() == [True, False]
    until(lambda: count(tmp_path / "resets") == before + 1)
    time.sleep(0.4)
    assert last["count"][:, 0].tolist() == [1, 1], "the end is shown until the next step"
    # Its episode has begun: the step that reports it does not reset again.
    obs, _, terminated, _, _ = envs.step(QUIET)
    assert obs["count"][:, 0].tolist() == [0, 2]
    assert not terminated.any() and count(tmp_path / "resets") == before + 1
    obs = envs.step(QUIET)[0]
    assert obs["count"][:, 0].tolist() == [1, 3]
    envs.close()


@pytest.mark.parametrize("how", ["kept", "seed", "options"])
def test_a_reset_that_is_asked_for_after_one_ahead(tmp_path, how):
    envs = make(tmp_path, reset_ahead=True)
    envs.reset(seed=0)
    envs.step(END)
    until(lambda: count(tmp_path / "resets") == 3)
    mask = np.array([True, False])
    more = {"seed": [5, None]} if how == "seed" else {}
    options = {"reset_mask": mask} | ({"nothing": 1} if how == "options" else {})
    obs, _ = envs.reset(options=options, **more)
    assert obs["count"][:, 0].tolist() == [0, 1]
    assert count(tmp_path / "resets") == (3 if how == "kept" else 4)
    envs.close()


def test_other_rows_go_on_during_a_reset(tmp_path):
    envs = make(tmp_path, reset_s=0.3, reset_ahead=True, on_reset="mask")
    envs.reset(seed=0)
    envs.step(END)
    paused = 0
    for _ in range(5000):
        obs, _, terminated, truncated, info = envs.step(QUIET)
        assert not (terminated | truncated).any()
        if "resetting" not in info:
            break
        assert info["_resetting"].tolist() == [True, False]
        assert obs["count"][0, 0] == 1
        paused += 1
        time.sleep(0.01)
    assert paused > 3
    assert obs["count"][:, 0].tolist() == [0, paused + 2]
    envs.close()


def test_a_reset_ahead_that_fails_costs_its_worker(tmp_path):
    envs = make(tmp_path, reset_ahead=True)
    envs.reset(seed=0)
    (tmp_path / "broken").touch()
    envs.step(END)
    until(lambda: count(tmp_path / "resets") == 3)
    (tmp_path / "broken").unlink()
    time.sleep(0.2)
    info = envs.step(QUIET)[4]
    assert info["_worker_restarted"].tolist() == [True, False]
    assert envs.step(QUIET)[0]["count"][:, 0].tolist() == [0, 3]
    envs.close()


@pytest.mark.parametrize(
    "options", [{"spares": -1}, {"on_reset": "mask"}, {"on_reset": "later", "reset_ahead": True}]
)
def test_settings_that_cannot_be(tmp_path, options):
    with pytest.raises(BadConfig):
        make(tmp_path, **options)
