"""Know which of torchrun's processes this is, and which cores are its own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from maniple.core.errors import BadConfig


@dataclass(frozen=True)
class Rank:
    """This process among all that torchrun started; alone, rank 0 of 1."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1
    is_placed: bool = True
    """Whether it is known, not guessed, how many ranks share this machine."""

    @classmethod
    def here(cls) -> Rank:
        """Read torchrun's variables."""
        world = _number("WORLD_SIZE", 1)
        rank = cls(
            rank=_number("RANK", 0),
            local_rank=_number("LOCAL_RANK", 0),
            world_size=world,
            local_world_size=_number("LOCAL_WORLD_SIZE", world),
            is_placed=world == 1 or "LOCAL_WORLD_SIZE" in os.environ,
        )
        if not 0 <= rank.rank < rank.world_size:
            raise BadConfig(
                f"RANK is {rank.rank} but WORLD_SIZE is {rank.world_size}. "
                "Start with torchrun, or unset both."
            )
        return rank

    @property
    def is_main(self) -> bool:
        """Whether this rank prints and writes for all."""
        return self.rank == 0

    def cpus(self) -> list[int]:
        """Cores this rank may use: its share of the machine's allowance, at least one."""
        allowed = allowed_cpus()
        share = allowed[self.local_rank :: max(1, self.local_world_size)]
        return share or [allowed[self.local_rank % len(allowed)]]

    def num_cpus(self) -> int:
        """How many threads this rank should run, within affinity and cgroup quota."""
        quota = cgroup_cpus()
        mine = len(self.cpus())
        if quota is None:
            return mine
        return max(1, min(mine, int(quota / max(1, self.local_world_size) + 0.5)))


def cgroup_cpus(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """CPUs that the container's quota allows, or None where there is no quota."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        pass
    try:
        quota = int((root / "cpu/cpu.cfs_quota_us").read_text())
        period = int((root / "cpu/cpu.cfs_period_us").read_text())
        return quota / period if quota > 0 else None
    except (OSError, ValueError):
        return None


def cgroup_memory(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that the container may use, or None where there is no limit."""
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            limit = int((root / name).read_text())
        except (OSError, ValueError):
            continue
        return limit if limit < 1 << 60 else None
    return None


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise BadConfig(
            f"{name} is {text!r}, which is no number. Start with torchrun, or unset it."
        ) from None


def allowed_cpus() -> list[int]:
    """Return the cores that this process may run on; all of them where that cannot be asked."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
