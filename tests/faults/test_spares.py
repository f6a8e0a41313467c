"""Spare workers take over at once."""

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


class Slow(Faulty):
    """Takes its time to start; counts that in a file."""

    def __init__(self, notes, start_s=0.0):
        super().__init__()
        time.sleep(start_s)
        _note(Path(notes) / "starts")


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


def make(notes, start_s=0.0, **options):
    def build():
        return Slow(notes, start_s)

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


def test_fewer_than_none_are_refused(tmp_path):
    with pytest.raises(BadConfig, match="spares is -1"):
        make(tmp_path, spares=-1)
