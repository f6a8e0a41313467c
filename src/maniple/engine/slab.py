"""Lay out one step of every environment in a single shared block of memory."""

from __future__ import annotations

import fcntl
import mmap
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.core.block import Block
from maniple.core.errors import ManipleError
from maniple.core.group import Contract
from maniple.core.rank import cgroup_memory
from maniple.core.step import StepArrays

LINE = 64
"""Bytes of a cache line: arrays of different writers do not share one."""

# Words of one worker, each on the line of its only writer.
ORDER, OPCODE, BUFFER, CHUNK = 0, 1, 2, 3
DONE, SLEEPS, EXEC_NS, HAS_MESSAGE, READY = 8, 9, 10, 11, 12
WORDS = 16
# Words of the parent, after those of the workers.
WAITS = 0


@dataclass(frozen=True)
class SlabShape:
    """Everything that two processes must agree on in order to see the same arrays."""

    contract: Contract
    num_envs: int
    workers: int
    max_chunk: int


class Slab:
    """A memfd without a name: no limit of /dev/shm, nothing to leak, freed with its last user.

    There are two buffers of step arrays: while a worker writes one, the other holds the last
    complete step, so that no half-written observation is ever seen.
    """

    def __init__(self, shape: SlabShape, fd: int | None = None) -> None:
        self.shape = shape
        size = _SizeCounter.of(shape)
        if fd is None:
            fd = _create(size)
        self.fd = fd
        self._map = mmap.mmap(fd, size)
        allocate = _Allocator(self._map)
        _lay_out(self, shape, allocate)

    words: memoryview
    actions: NDArray
    seeds: NDArray[np.uint64]
    has_seed: NDArray[np.bool_]
    chosen: NDArray[np.bool_]
    num_steps: NDArray[np.int64]
    buffers: list[StepArrays]
    finals: Block
    final_extras: Block
    final_rows: NDArray[np.bool_]

    def close(self) -> None:
        """Drop the descriptor; the memory goes when the last array over it does."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _lay_out(slab: Slab, shape: SlabShape, allocate) -> None:
    contract, rows = shape.contract, shape.num_envs
    action = contract.action["action"]
    words = allocate(((shape.workers + 1) * WORDS,), np.dtype(np.int64))
    if isinstance(words, np.ndarray):
        # A memoryview is read in a third of the time of a numpy element.
        slab.words = memoryview(words)  # type: ignore[arg-type]
    slab.actions = allocate((rows, shape.max_chunk, *action.shape), action.dtype)
    slab.seeds = allocate((rows,), np.dtype(np.uint64))
    slab.has_seed = allocate((rows,), np.dtype(np.bool_))
    slab.chosen = allocate((rows,), np.dtype(np.bool_))
    slab.num_steps = allocate((rows,), np.dtype(np.int64))
    slab.buffers = [StepArrays(contract.observation, contract.extras, rows, allocate) for _ in "ab"]
    slab.finals = Block(contract.observation, rows, allocate)
    slab.final_extras = Block(contract.extras, rows, allocate)
    slab.final_rows = allocate((rows,), np.dtype(np.bool_))


class _Allocator:
    """Allocates arrays in a mapping, one after the other."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        self._at = 0

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(self._memory, dtype, count, self._at).reshape(shape)
        self._at += _padded(count * np.dtype(dtype).itemsize)
        return array


class _SizeCounter:
    """Adds up what `_lay_out` would allocate."""

    def __init__(self) -> None:
        self.size = 0

    def __call__(self, shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
        dtype = np.dtype(dtype)
        self.size += _padded(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
        # Only the shape matters here: a single number, broadcast.
        return np.broadcast_to(np.zeros((), dtype), shape)

    @classmethod
    def of(cls, shape: SlabShape) -> int:
        measure = cls()

        class _Paper:
            pass

        _lay_out(_Paper(), shape, measure)  # type: ignore[arg-type]
        return max(LINE, measure.size)


def _padded(nbytes: int) -> int:
    return -(-nbytes // LINE) * LINE


def _create(size: int) -> int:
    """Reserve the memory now: a full machine is an error here, not a SIGBUS later."""
    limit = cgroup_memory()
    if limit is not None and size > limit:
        raise ManipleError(
            f"The observations need {size / 2**20:.0f} MB of shared memory, but this container "
            f"may use {limit / 2**20:.0f} MB. Use fewer environments or smaller images."
        )
    fd = os.memfd_create("maniple-slab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.posix_fallocate(fd, 0, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    except OSError as error:
        os.close(fd)
        raise ManipleError(
            f"Cannot reserve {size / 2**20:.0f} MB of shared memory: {error.strerror}. "
            "Use fewer environments or smaller images."
        ) from None
    return fd
