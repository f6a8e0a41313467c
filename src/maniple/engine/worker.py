"""Run a worker: build a group of environments, then carry out orders from the slab."""

from __future__ import annotations

import faulthandler
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
from maniple.engine.channel import pack, receive_message, send_message, send_packed
from maniple.engine.doorbell import await_change, fence, ring
from maniple.engine.reexec import reexec
from maniple.engine.slab import Slab, SlabShape

# Orders.
STEP, CHUNK, RESET, ASK, CLOSE = 1, 2, 3, 4, 5
STACK_SIGNAL = signal.SIGUSR1
"""Writes the Python stack into the crash log, even while the GIL is held."""


@dataclass(frozen=True)
class Job:
    """What a worker needs to know at its start."""

    recipe: bytes
    """The recipe, as cloudpickle wrote it."""
    worker: int
    first_row: int
    rows: int
    rank: int
    mode: AutoresetMode
    shape: SlabShape | None = None
    """The slab's, for a worker that replaces another one."""
    seeds: tuple[int, ...] = ()
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


def work(data: bytes, fds: list[int], is_fork: bool = True) -> None:
    """Run a worker until its engine closes it, or until its parent has ended."""
    job: Job = pickle.loads(data)  # noqa: S301  (from our own parent)
    if job.is_fresh and is_fork:
        reexec(data, fds, job.path, job.environment)
    channel_fd, wake_fd, crash_log, *slab_fd = fds
    faulthandler.enable(file=crash_log)
    faulthandler.register(STACK_SIGNAL, file=crash_log, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.update(job.environment)
    sys.path[:] = job.path
    channel, wake = socket.socket(fileno=channel_fd), socket.socket(fileno=wake_fd)
    try:
        _pin_to_core(job)
        group = _build(job)
    except ManipleError as error:
        send_message(channel, ("refused", _portable(error)))
        raise SystemExit(3) from None
    except BaseException:
        send_message(channel, ("failed", traceback.format_exc()))
        raise SystemExit(3) from None
    if job.shape is None:
        # The parent makes the slab from the contract that the first worker sends.
        send_message(channel, ("built", group.contract))
        shape = receive_message(channel)
        slab = Slab(shape, _receive_fd(channel))
    else:
        slab = Slab(job.shape, slab_fd[0])
    worker = _Worker(job, group, slab, channel, wake)
    send_message(channel, ("ready", os.getpid()))
    try:
        worker.serve()
    except EOFError:
        pass
    finally:
        group.close()


class _Worker:
    """The loop, and the orders that it carries out."""

    def __init__(
        self, job: Job, group: Group, slab: Slab, channel: socket.socket, wake: socket.socket
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
                message = self._execute(opcode)
            except Exception:
                send_message(self._channel, ("error", traceback.format_exc()))
                raise SystemExit(4) from None
            words[base + layout.EXEC_NS] = perf_counter_ns() - start
            words[base + layout.HAS_MESSAGE] = 0
            if message is not None:
                # Announced in the slab before it is sent, so that the parent knows to listen.
                words[base + layout.HAS_MESSAGE] = 1
                self._publish(order)
                send_packed(self._channel, message)
            else:
                self._publish(order)

    def _execute(self, opcode: int) -> bytes | None:
        """Carry out an order; return a message, packed, if the slab does not hold it all."""
        words, base = self._slab.words, self._base
        buffer = words[base + layout.BUFFER]
        autoreset = self._autoreset
        if opcode == STEP:
            autoreset.step(buffer, self._actions[:, 0])
        elif opcode == CHUNK:
            autoreset.chunk(buffer, self._actions[:, : words[base + layout.CHUNK]])
            self._num_steps[:] = autoreset.num_steps
        elif opcode == RESET:
            try:
                self._reset(buffer)
            except ManipleError as error:
                # The caller's mistake, not the simulator's: the worker goes on.
                return pack(_portable(error))
        elif opcode == ASK:
            return self._answer()
        if self._job.mode is AutoresetMode.SAME_STEP:
            self._keep_finals()
        row_infos = autoreset.row_infos()
        return _pack_infos(row_infos) if row_infos else None

    def _reset(self, buffer: int) -> None:
        slab, part = self._slab, self._rows
        options = (
            receive_message(self._channel) if self._slab.words[self._base + layout.CHUNK] else {}
        )
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

    def _answer(self) -> bytes:
        """Call a method of the autoreset: touch, get_state or set_state."""
        name, *args = receive_message(self._channel)
        try:
            return pack((True, getattr(self._autoreset, name)(*args)))
        except Exception as error:
            return pack((False, _portable(error)))

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


def _build(job: Job) -> Group:
    recipe = pickle.loads(job.recipe)  # noqa: S301  (from our own parent)
    return recipe.group(job.rows, 1, job.rank, job.first_row)


def _pack_infos(row_infos: dict[int, dict[str, Any]]) -> bytes:
    """Pack the infos of rows; if something in them cannot be pickled, all of it as text."""
    try:
        return pack(row_infos)
    except Exception:
        return pack({r: {k: repr(v) for k, v in info.items()} for r, info in row_infos.items()})


def _portable(error: Exception) -> Exception:
    """Return the error if it survives a pickle, else its text as a plain one."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _receive_fd(channel: socket.socket) -> int:
    _, fds, _, _ = socket.recv_fds(channel, 1, 1)
    return fds[0]
