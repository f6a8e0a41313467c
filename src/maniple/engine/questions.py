"""Ask worker processes what is not in the slab: attributes, calls, states."""

from __future__ import annotations

import pickle
from typing import Any

from maniple.core.errors import BadConfig, WorkerDied
from maniple.engine.channel import ChannelTimeout
from maniple.engine.replacements import Replacements
from maniple.engine.worker import ASK
from maniple.engine.worker_handle import WorkerHandle
from maniple.engine.worker_pool import WorkerPool, how_it_failed, unpack_error


def ask(
    pool: WorkerPool, replacements: Replacements, questions: dict[WorkerHandle, bytes]
) -> list[Any]:
    """Have workers call methods of their `Autoreset`; return the answers in that order.

    Raises:
        WorkerDied: A worker was lost. It is replaced, but is not asked again: what it did
            before it ended is not known, and its replacement has no episode to tell of.
    """
    for handle in questions:
        replacements.make_ready(handle)
    failures: dict[WorkerHandle, str] = {}
    for handle, question in questions.items():
        try:
            pool.post_with_message(handle, ASK, handle.buffer, question)
        except (EOFError, ChannelTimeout) as error:
            failures[handle] = how_it_failed(error)
    awaited = [handle for handle in questions if handle not in failures]
    failures |= pool.wait(awaited)
    answers = []
    for handle in awaited:
        if handle in failures:
            continue
        try:
            answers.append(pool.collect(handle))
        except (EOFError, ChannelTimeout) as error:
            failures[handle] = how_it_failed(error)
    replacements.replace_all(failures)
    for handle in failures:
        raise WorkerDied(handle.owed or "")
    return [_unpack(kind, value) for kind, value in answers]


def _unpack(kind: str, value: bytes) -> Any:
    if kind == "refused":
        raise unpack_error(value)
    try:
        return pickle.loads(value)  # noqa: S301  (from our own worker)
    except Exception as error:
        raise BadConfig(
            f"The answer cannot be unpickled here: {type(error).__name__}: {error}"
        ) from None
