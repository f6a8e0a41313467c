"""torchrun's variables, and the cores that a rank may use."""

import os

import pytest

from maniple.core.errors import BadConfig
from maniple.core.rank import Rank, cgroup_cpus, cgroup_memory


def test_alone(monkeypatch):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert Rank.here() == Rank()
    assert Rank.here().is_main


def test_ranks_share_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    shares = [Rank(r, r, 2, 2).cpus() for r in range(2)]
    assert sorted(shares[0] + shares[1]) == [0, 1, 2, 3]
    assert not set(shares[0]) & set(shares[1])


def test_more_ranks_than_cores_still_get_one(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert Rank(3, 3, 4, 4).cpus() == [0]


@pytest.mark.parametrize(("name", "value"), [("RANK", "x"), ("RANK", "7")])
def test_nonsense_is_named(monkeypatch, name, value):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv(name, value)
    with pytest.raises(BadConfig, match=name):
        Rank.here()


def test_cgroup_limits(tmp_path):
    assert cgroup_cpus(tmp_path) is None
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    (tmp_path / "memory.max").write_text("1073741824\n")
    assert cgroup_cpus(tmp_path) == 1.5
    assert cgroup_memory(tmp_path) == 2**30
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert cgroup_cpus(tmp_path) is None
    assert cgroup_memory(tmp_path) is None
