"""Run a worker: build a group of environments, then carry out orders from the slab."""

from __future__ import annotations

import faulthandler
import mmap
import os
import pickle
import signal
import socket
import sys
import traceback
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from maniple.core.errors import BadConfig, ManipleError
from maniple.core.group import Group
from maniple.engine import slab as layout
from maniple.engine.autoreset import Autoreset
from maniple.engine.channel import Channel, pack
from maniple.engine.doorbell import await_change, fence, ring
from maniple.engine.reexec import reexec
from maniple.engine.slab import Slab, SlabShape

# Orders.
STEP, CHUNK, RESET, ASK, CLOSE, PREPARE = 1, 2, 3, 4, 5, 6
STACK_SIGNAL = signal.SIGUSR1
"""Writes the Python stack into the crash log, even while the GIL is held."""


@dataclass(frozen=True)
class Job:
    """What a worker needs to know at its start."""

    worker: int
    first_row: int
    rows: int
    rank: int
    mode: AutoresetMode
    shape: SlabShape | None = None
    """The slab's; None: the whole job comes again, with it, when the environments are built."""
    seeds: tuple[int | None, ...] = ()
    """Seeds of the first episodes of a replacement."""
    last_order: int = 0
    cpus: tuple[int, ...] = ()
    """The core to run on; none: any."""
    must_pin: bool = False
    """Whether it is an error if that core cannot be had."""
    path: tuple[str, ...] = ()
    """Where the parent finds its modules."""
    environment: dict[str, str] = field(default_factory=dict)
    is_fresh: bool = False
    """Go on as a new program instead of as a fork."""


def work(fds: list[int], is_fork: bool = True) -> None:
    """Run a worker until its engine closes it, or until its parent has ended.

    Args:
        fds: The job, the recipe, the channel, the wake-ups, the crash log and, for a replacement,
            the slab.
        is_fork: Whether this is a fork of the zygote, and no new program yet.
    """
    job_fd, recipe_fd, channel_fd, wake_fd, crash_log, *slab_fd = fds
    job: Job = _load(job_fd)
    sys.path[:] = job.path
    if job.is_fresh and is_fork:
        reexec(fds, job.environment)
    os.close(job_fd)
    faulthandler.enable(file=crash_log)
    faulthandler.register(STACK_SIGNAL, file=crash_log, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(job.environment)
    channel, wake = Channel(socket.socket(fileno=channel_fd)), socket.socket(fileno=wake_fd)
    group = None
    try:
        group = _start(job, recipe_fd, channel)
        if job.shape is None:
            # The parent makes the slab from the contract that the first worker sends; a spare
            # learns here which rows are its own.
            channel.send(("built", group.contract))
            job, slab_fd = channel.receive(), [channel.receive_fd()]
            group.first_row = job.first_row
            _pin_to_core(job)
        assert job.shape is not None
        slab = Slab(job.shape, slab_fd[0])
        worker = _Worker(job, group, slab, channel, wake)
        slab.words[job.worker * layout.WORDS + layout.READY] = os.getpid()
        channel.send(("ready", os.getpid()))
        worker.serve()
    except EOFError:
        pass
    finally:
        if group is not None:
            group.close()


def _start(job: Job, recipe_fd: int, channel: Channel) -> Group:
    """Build the environments; if that fails, say so and end."""
    try:
        _pin_to_core(job)
        recipe = _load(recipe_fd)
        os.close(recipe_fd)
        return recipe.group(job.rows, 1, job.rank, job.first_row)
    except ManipleError as error:
        channel.send(("refused", _pack_error(error)))
    except BaseException:
        channel.send(("failed", traceback.format_exc()))
    raise SystemExit(3)


def _load(fd: int) -> Any:
    """Unpickle what our own parent wrote into a memfd."""
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as data:
        return pickle.loads(data)  # noqa: S301


class _Worker:
    """The loop, and the orders that it carries out."""

    def __init__(
        self, job: Job, group: Group, slab: Slab, channel: Channel, wake: socket.socket
    ) -> None:
        self._job = job
        self._slab = slab
        self._channel = channel
        self._wake = wake
        self._rows = slice(job.first_row, job.first_row + job.rows)
        buffers = [buffer.rows_of(self._rows) for buffer in slab.buffers]
        self._autoreset = Autoreset(group, buffers, job.mode, job.first_row)
        if job.seeds:
            self._autoreset.wait_for_reset(job.seeds)
        self._actions = slab.actions[self._rows]
        self._num_steps = slab.num_steps[self._rows]
        self._base = job.worker * layout.WORDS
        self._parent = slab.shape.workers * layout.WORDS

    def serve(self) -> None:
        """Wait for orders and carry them out."""
        words, base = self._slab.words, self._base
        order_at, sleeps_at = base + layout.ORDER, base + layout.SLEEPS
        order = self._job.last_order
        while True:
            order = await_change(words, order_at, order, sleeps_at, self._wake)
            opcode = words[base + layout.OPCODE]
            if opcode == CLOSE:
                self._publish(order)
                return
            start = perf_counter_ns()
            try:
                message = self._execute(opcode, order)
            except Exception:
                self._channel.send(("error", traceback.format_exc()), order)
                raise SystemExit(4) from None
            words[base + layout.EXEC_NS] = perf_counter_ns() - start
            words[base + layout.HAS_MESSAGE] = 0
            if message is not None:
                # Announced in the slab before it is sent, so that the parent knows to listen.
                words[base + layout.HAS_MESSAGE] = 1
                self._publish(order)
                self._channel.send_packed(message, order)
            else:
                self._publish(order)

    def _execute(self, opcode: int, order: int) -> bytes | None:
        """Carry out an order; return a message, packed, if the slab does not hold it all."""
        words, base = self._slab.words, self._base
        buffer = words[base + layout.BUFFER]
        autoreset = self._autoreset
        try:
            if opcode == STEP:
                autoreset.step(buffer, self._actions[:, 0])
            elif opcode == CHUNK:
                autoreset.chunk(buffer, self._actions[:, : words[base + layout.CHUNK]])
                self._num_steps[:] = autoreset.num_steps
            elif opcode == RESET:
                self._reset(buffer, order)
            elif opcode == ASK:
                return self._answer(order)
            elif opcode == PREPARE:
                autoreset.prepare(buffer)
                return None
        except ManipleError as error:
            # The caller's mistake, not the simulator's: the worker goes on.
            return pack(("refused", _pack_error(error)))
        if self._job.mode is AutoresetMode.SAME_STEP:
            self._keep_finals()
        row_infos = autoreset.row_infos()
        return _pack_infos(row_infos) if row_infos else None

    def _reset(self, buffer: int, order: int) -> None:
        slab, part = self._slab, self._rows
        has_options = self._slab.words[self._base + layout.CHUNK]
        options = _unpack(self._channel.receive(order)) if has_options else {}
        rows = np.flatnonzero(slab.chosen[part])
        has, given = slab.has_seed[part], slab.seeds[part]
        seeds = [int(given[row]) if has[row] else None for row in rows]
        self._autoreset.reset(buffer, rows, seeds, options)

    def _keep_finals(self) -> None:
        slab, finals = self._slab, self._autoreset.finals
        slab.final_rows[self._rows] = False
        for final in finals:
            slab.finals.put(final.row, final.obs)
            slab.final_extras.put(final.row, final.extras)
            slab.final_rows[final.row] = True

    def _answer(self, order: int) -> bytes:
        """Call a method of the autoreset: touch, get_state or set_state."""
        question = self._channel.receive(order)
        try:
            name, *args = _unpack(question)
            return pack(("answer", pack(getattr(self._autoreset, name)(*args))))
        except Exception as error:
            return pack(("refused", _pack_error(error)))

    def _publish(self, order: int) -> None:
        words, base = self._slab.words, self._base
        words[base + layout.DONE] = order
        fence()
        if words[self._parent + layout.WAITS]:
            ring(self._wake)


def _pin_to_core(job: Job) -> None:
    if not job.cpus:
        return
    try:
        os.sched_setaffinity(0, job.cpus)
    except OSError as error:
        # A container may forbid it; unless it was asked for, the kernel chooses the core.
        if job.must_pin:
            raise BadConfig(
                f"Worker {job.worker} cannot be tied to core {job.cpus[0]}: {error.strerror}. "
                "Leave pin_cpus out."
            ) from None


# What other people's code has made is pickled by itself, inside of a message of bytes and plain
# numbers: if it cannot be unpickled, the message can.


def _unpack(data: bytes) -> Any:
    """Return what the caller gave.

    Raises:
        BadConfig: It cannot be unpickled in this process.
    """
    try:
        return pickle.loads(data)  # noqa: S301  (from our own parent)
    except Exception as error:
        raise BadConfig(
            f"What was given cannot be unpickled in a worker: {type(error).__name__}: {error}"
        ) from None


def _pack_infos(row_infos: dict[int, dict[str, Any]]) -> bytes:
    """Pack the infos of rows; what cannot be pickled is sent as text."""
    packed = []
    for row, info in row_infos.items():
        try:
            packed.append((row, pack(info)))
        except Exception:
            packed.append((row, pack({str(k): _sendable(v) for k, v in info.items()})))
    return pack(("infos", packed))


def _sendable(value: Any) -> Any:
    try:
        pickle.dumps(value)
        return value
    except Exception:
        return _text(value)


def _text(value: Any) -> str:
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def _pack_error(error: Exception) -> bytes:
    """Pack an error if it survives that, else its text as a plain one."""
    try:
        data = pack(error)
        pickle.loads(data)  # noqa: S301
        return data
    except Exception:
        return pack(RuntimeError(f"{type(error).__name__}: {error}"))
