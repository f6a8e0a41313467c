"""Replace worker processes that have failed."""

from __future__ import annotations

import numpy as np

from maniple.core.errors import ManipleError, WorkerDied
from maniple.core.seeds import replacement_seed
from maniple.engine.worker_handle import WorkerHandle
from maniple.engine.worker_pool import WorkerPool


class Replacements:
    """The pool, and what a replacement must know of the rows that it takes over."""

    def __init__(self, pool: WorkerPool, seeds: list[int | None]) -> None:
        """Watch over the workers of a pool; `seeds` are those last given, row by row."""
        self._pool = pool
        self._seeds = seeds

    def make_ready(self, handle: WorkerHandle) -> None:
        """Wait until a worker can take orders."""
        self._pool.make_ready(handle, self.seeds(handle))

    def replace_all(self, failures: dict[WorkerHandle, str]) -> None:
        """Start replacements of workers; one that cannot be had does not keep the others back.

        Raises:
            ManipleError: The first of those that cannot be had.
        """
        trouble = None
        for handle, how in failures.items():
            try:
                self._replace(handle, how)
            except ManipleError as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble

    def _replace(self, handle: WorkerHandle, how: str) -> None:
        """Start the replacement of a worker, and note what the next step has to report.

        Raises:
            WorkerDied: It has died too often.
        """
        if handle.is_alive:
            handle.owed = self.describe(handle, how)
            handle.count_failure()
            self._pool.give_up(handle)
        handle.owed = handle.owed or "A worker was replaced after an interrupt."
        config = self._pool.config
        if self._pool.is_beyond_help(handle):
            raise WorkerDied(
                f"{handle.owed}\nIt was replaced {config.max_restarts} times within "
                f"{config.restart_window_s:g} s: the fault is permanent."
            )
        handle.restarts += 1
        self._pool.launch(handle, self.seeds(handle))

    def seeds(self, handle: WorkerHandle) -> tuple[int | None, ...]:
        """Derive new seeds from those that were given; what was never seeded stays so."""
        seeds = self._seeds[handle.rows]
        return tuple(None if s is None else replacement_seed(s, handle.restarts) for s in seeds)

    def describe(self, handle: WorkerHandle, how: str) -> str:
        """Describe a failure: rows, cause, seeds, last action, stack."""
        assert self._pool.slab is not None
        cause, stack = self._pool.diagnose(handle, how)
        row = handle.rows.start
        last = self._pool.slab.actions[row, 0]
        action = np.array2string(last, precision=4, separator=", ")
        text = (
            f"Worker {handle.index} (rows {handle.row_names}, process {handle.pid}) {cause}; "
            f"seeds {self._seeds[handle.rows]}, last action of row {row}: {action}"
        )
        return f"{text}\n{stack}" if stack else text
