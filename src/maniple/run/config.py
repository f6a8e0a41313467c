"""The settings of a run: those that a person chooses, and when things are due."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from maniple.core.errors import BadConfig


@dataclass(frozen=True)
class RunConfig:
    """What is trained, and for how long."""

    task: str = "so101/Reach-v0"
    """A task of 'maniple list', or any Gymnasium id."""

    max_steps: int | None = 100_000
    """Environment steps in all, over all rows; under torchrun, per rank. None: any number."""

    max_updates: int | None = None
    """Updates in all; None: as many as the steps bring."""

    max_minutes: float | None = None
    """Wall time after which the run ends by itself; None: never."""

    stop_at_success: float | None = None
    """End when an evaluation reaches this success rate; None: never."""

    seed: int = 0
    """Root of all random numbers of the run; evaluation has seeds of its own."""

    def __post_init__(self) -> None:
        at_least("max_steps", self.max_steps, 1)
        at_least("max_updates", self.max_updates, 1)
        at_least("max_minutes", self.max_minutes, 0)
        at_least("stop_at_success", self.stop_at_success, 0)
        if self.stop_at_success is not None and self.stop_at_success > 1:
            raise BadConfig(f"stop_at_success is {self.stop_at_success}; it is a rate, 0 to 1.")
        at_least("seed", self.seed, 0)


@dataclass(frozen=True)
class Schedule:
    """When a run logs, evaluates and saves, counted in environment steps (BC: in updates)."""

    log_period: int = 1_000
    """Steps between two lines of metrics."""

    eval_period: int = 2_000
    """Steps between two evaluations; 0: only at the end."""

    eval_n_trajs: int = 50
    """Episodes of an evaluation; 0: never evaluate."""

    checkpoint_period: int = 20_000
    """Steps between two checkpoints; 0: only at the end."""

    wandb: str | None = None
    """Project of Weights & Biases that gets the metrics too; None: they stay here."""

    def __post_init__(self) -> None:
        for name in ("log_period", "eval_period", "eval_n_trajs", "checkpoint_period"):
            at_least(name, getattr(self, name), 0)


def at_least(name: str, value: float | None, least: int) -> None:
    """Refuse a setting that is too small or not finite; None is always accepted."""
    if value is not None and not (value >= least and isfinite(value)):
        raise BadConfig(f"{name} is {value}; it must be {least} or larger.")
