"""What an engine asks of the environments that it steps together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from maniple.core.spec import Layout
from maniple.core.step import StepArrays


@dataclass(frozen=True)
class Contract:
    """Everything about an environment that can be known before one is stepped."""

    observation: Layout
    action: Layout
    extras: Layout
    observation_space: Space
    action_space: Space
    metadata: dict[str, Any]
    render_mode: str | None = None
    clip_actions: bool = False
    reset_options: tuple[str, ...] | None = ()
    """Names that the options of `reset` may have; None: any, it is the environment's business."""
    is_foreign: bool = False
    """Whether it is somebody else's: it gets the caller's seed, and no invented one instead of
    None."""
    variations: int | None = None
    """How many variations there are; None: not known before the simulator runs."""


class Group(Protocol):
    """Environments that are stepped together, writing into arrays that they are given.

    `reset` and `step` move rows on; `report` then writes what all of them look like. An engine
    may reset some rows and step the others before it asks for one report.
    """

    contract: Contract
    first_row: int
    """What the engine calls its first row, for messages."""
    limit: int | None
    """Steps after which an episode is truncated; None: never, or by somebody else."""

    @property
    def faulted(self) -> Collection[int]:
        """Rows that are out of service: they failed since, or in, their last reset."""
        ...

    def bind(self, arrays: StepArrays) -> None:
        """Report into these arrays from now on."""

    def reset(
        self, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict | None = None
    ) -> None:
        """Begin a new episode in `rows`."""

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Step the active rows (None: all)."""

    def report(self, final: bool = True) -> None:
        """Write observations, extras, rewards and flags of all rows.

        Reward and flags mean something only in rows that were stepped since the last report.
        Between the steps of a chunk `final` is False: pictures may be left out.
        """

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the infos of single rows: faults, infos of hosted environments."""
        ...

    def row(self, row: int) -> Any:
        """Return the object that get_attr, set_attr and call work on."""

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""


@runtime_checkable
class RowByRow(Protocol):
    """A group whose rows need not be stepped together: each takes a whole chunk by itself."""

    def chunk(
        self, actions: NDArray, running: NDArray[np.bool_], num_steps: NDArray[np.int64]
    ) -> None:
        """Let running rows take their actions (rows, K, ...) until they end.

        Written are the sum of a row's rewards, its flags, and how many steps it took.
        """


class Recipe(Protocol):
    """A picklable description from which any process can make a group.

    The defaults are for a loop in Python: worker processes, unless there is only one
    environment.
    """

    preload: ClassVar[tuple[str, ...]] = ()
    """Modules that worker processes import once, before any of them is forked."""

    needs_own_process: ClassVar[bool] = False
    """Whether every environment must have a worker process to itself."""

    def preferred_engine(self, num_envs: int, workers: int | None) -> str:
        """Return the engine for engine='auto'; `workers` is None if the user named no number."""
        return "native" if num_envs == 1 and workers is None else "process"

    def process_options(self) -> dict[str, Any]:
        """Return the settings of `ProcessConfig` that its workers need."""
        return {}

    def contract(self) -> Contract:
        """Describe the environment without keeping one."""
        ...

    def group(self, num_envs: int, threads: int, rank: int = 0, first_row: int = 0) -> Group:
        """Build `num_envs` environments that are stepped on `threads` threads."""
        ...
