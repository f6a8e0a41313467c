"""Have workers reset rows while the rows of the others go on."""

from __future__ import annotations

from collections.abc import Iterable

from maniple.engine.channel import ChannelTimeout
from maniple.engine.worker import PREPARE
from maniple.engine.worker_handle import WorkerHandle
from maniple.engine.worker_pool import WorkerPool, how_it_failed


def begin_resets(pool: WorkerPool, handles: list[WorkerHandle]) -> None:
    """Have workers reset the rows that wait for it, without waiting for them."""
    for handle in handles:
        # First: an order that an interrupt leaves half given is still known for what it is.
        handle.is_resetting = True
        pool.post(handle, PREPARE, handle.good_buffer, pool.deadline())
    pool.wake(handles)


def end_resets(pool: WorkerPool, handles: Iterable[WorkerHandle]) -> dict[WorkerHandle, str]:
    """See which workers are done; where none can take a step, wait for the first.

    Returns:
        Those that have failed, and why.
    """
    handles = list(handles)
    resetting = [handle for handle in handles if handle.is_resetting]
    for handle in resetting:
        pool.resume(handle)
    # A worker that is not back yet takes no step either; one that is lost has that to report.
    is_nobody_free = bool(resetting) and not any(
        handle.owed is not None or (handle.is_ready and not handle.is_resetting)
        for handle in handles
    )
    failures = pool.wait(resetting, enough=1) if is_nobody_free else pool.overdue(resetting)
    for handle in resetting:
        if handle not in failures and pool.has_answered(handle):
            # If it refused to reset, it refuses again in the step that would have shown the reset.
            if how := _failure_in_answer(pool, handle):
                failures[handle] = how
            else:
                handle.is_resetting = False
    return failures


def _failure_in_answer(pool: WorkerPool, handle: WorkerHandle) -> str | None:
    if handle.channel is None or not handle.channel.is_whole:
        return "interrupted"
    try:
        pool.collect(handle)
    except (EOFError, ChannelTimeout) as error:
        return how_it_failed(error)
    return None
