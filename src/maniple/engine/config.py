"""Settings of the process engine."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass, field

from maniple.core.errors import BadConfig

ON_RESTART = ON_RESET = ("block", "mask")


@dataclass(frozen=True)
class ProcessConfig:
    """How workers are run, watched and replaced."""

    workers: int = 1
    """Processes; the environments are spread evenly over them."""

    step_timeout_s: float = 60.0
    """A worker that has not answered by then is taken for hung, and replaced."""

    start_timeout_s: float = 120.0
    """How long a worker may take to build its environments."""

    max_restarts: int = 10
    """Replacements of one worker within `restart_window_s`; one more raises WorkerDied."""

    restart_window_s: float = 60.0
    """The time in which `max_restarts` are counted."""

    on_restart: str = "block"
    """block: a step waits for the replacement (reproducible); mask: its rows pause meanwhile."""

    on_reset: str = "block"
    """block: a step waits for the rows that are reset in it (reproducible); mask: rows whose worker
    resets some of them pause meanwhile. For simulators that take long to reset; NextStep only."""

    spares: int = 0
    """Workers that are started beforehand, and take the place of those that fail: for simulators
    that take seconds to start."""

    max_chunk: int = 64
    """Longest action chunk that the slab has room for."""

    pin_cpus: bool | None = None
    """Tie each worker to a core of this rank's share. None: where there are several cores, each
    gets as many workers as the others, and workers are no programs of their own (is_fresh). Left
    to itself, the kernel puts two workers onto one core while the parent waits on the other.
    Threads and programs that an environment starts are tied to its worker's core, too: False is
    for environments that need more than one, and for cores that other programs keep busy."""

    preload: tuple[str, ...] = ()
    """Modules that every worker will need: imported once, before any is forked."""

    environment: dict[str, str] = field(default_factory=dict)
    """Variables set in the workers."""

    is_fresh: bool = False
    """Start every worker as a new program: for simulators that are no good after a fork, or that
    need variables which are only read when a program starts (LD_LIBRARY_PATH)."""

    def cpus_of(self, worker: int, share: list[int], is_sure: bool = True) -> tuple[int, ...]:
        """Return the core that a worker is tied to, if any.

        Args:
            worker: Its number.
            share: The cores that this rank may use.
            is_sure: Whether no other rank uses them.
        """
        is_even = len(share) > 1 and self.workers % len(share) == 0
        by_itself = is_even and is_sure and not self.is_fresh
        is_tied = by_itself if self.pin_cpus is None else self.pin_cpus
        return (share[worker % len(share)],) if is_tied else ()

    def __post_init__(self) -> None:
        if self.on_restart not in ON_RESTART:
            raise BadConfig(f"on_restart is {self.on_restart!r}; it may be one of: {ON_RESTART}.")
        if self.on_reset not in ON_RESET:
            raise BadConfig(f"on_reset is {self.on_reset!r}; it may be one of: {ON_RESET}.")
        if self.spares < 0:
            raise BadConfig(f"spares is {self.spares}; it must be 0 or larger.")
        for name in ("workers", "max_chunk"):
            if getattr(self, name) < 1:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be 1 or larger.")
        for name in ("step_timeout_s", "start_timeout_s"):
            if not getattr(self, name) > 0:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be above 0.")


def missing_for_workers() -> str | None:
    """Say what this system lacks for worker processes that share memory; None: nothing."""
    needed = ((os, "memfd_create"), (os, "pidfd_open"), (select, "epoll"))
    missing = [name for module, name in needed if not hasattr(module, name)]
    return ", ".join(missing) or None
