"""Workers are tied to cores where that spreads them evenly."""

from __future__ import annotations

import os
from functools import partial

import gymnasium
import pytest

import maniple
from maniple.core.errors import BadConfig
from maniple.core.rank import Rank
from maniple.engine.config import ProcessConfig

SHARE = [4, 5, 6]


@pytest.mark.parametrize(
    ("workers", "settings", "is_tied"),
    [
        (3, {}, True),
        (6, {}, True),
        (2, {}, False),
        (4, {}, False),
        (4, {"pin_cpus": True}, True),
        (3, {"pin_cpus": False}, False),
        (3, {"is_fresh": True}, False),
        (3, {"is_fresh": True, "pin_cpus": True}, True),
    ],
)
def test_who_is_tied(workers: int, settings: dict, is_tied: bool) -> None:
    """Unless it is chosen by hand, only where no core would get more than another."""
    config = ProcessConfig(workers=workers, **settings)
    cores = [config.cpus_of(worker, SHARE) for worker in range(workers)]
    assert cores == [(SHARE[k % 3],) if is_tied else () for k in range(workers)]


def test_nobody_is_tied_where_it_cannot_help() -> None:
    """To the only core, or to one that another rank may have been given as well."""
    config = ProcessConfig(workers=4)
    assert config.cpus_of(0, [7]) == ()
    assert config.cpus_of(1, [7, 8], is_sure=False) == ()
    assert config.cpus_of(1, [7, 8]) == (8,)


def test_a_guessed_share_is_not_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some launchers tell how many ranks there are, but not how many on this machine."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    assert not Rank.here().is_placed
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert Rank.here().is_placed


@pytest.mark.parametrize("pin_cpus", [None, False])
def test_the_kernel_knows(pin_cpus: bool | None) -> None:
    """As many workers as cores: each has one of its own, unless that is switched off."""
    allowed = os.sched_getaffinity(0)
    if not 1 < len(allowed) <= 8:
        pytest.skip("needs two cores to spread workers over, and starts one for each")
    count = len(allowed)
    envs = maniple.make_vec(
        lambda: gymnasium.make("CartPole-v1"), count, engine="process", workers=count,
        pin_cpus=pin_cpus,
    )  # fmt: skip
    try:
        seen = [os.sched_getaffinity(handle.pid) for handle in envs._engine._pool.handles]
    finally:
        envs.close()
    if pin_cpus is False:
        assert seen == [allowed] * count
    else:
        assert sorted(min(cores) for cores in seen) == sorted(allowed)
        assert all(len(cores) == 1 for cores in seen)
    assert os.sched_getaffinity(0) == allowed


def test_a_core_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for, it is told; else the worker runs wherever it may."""
    monkeypatch.setattr(ProcessConfig, "cpus_of", lambda *_: (100_000,))
    make = partial(maniple.make_vec, "LeRobot-v0", 2, engine="process", workers=2)
    with pytest.raises(BadConfig, match="cannot be tied to core 100000"):
        make(pin_cpus=True)
    envs = make()
    envs.reset(seed=0)
    envs.close()
