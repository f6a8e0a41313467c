"""The worker processes of one engine, as it gives them orders."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from dataclasses import replace
from itertools import pairwise
from time import monotonic, perf_counter, sleep
from typing import Any

from gymnasium.vector import AutoresetMode

from maniple.core.errors import ClosedError, ManipleError, WorkerDied
from maniple.core.rank import Rank
from maniple.engine import slab as layout
from maniple.engine.channel import Channel, ChannelTimeout, pack
from maniple.engine.config import ProcessConfig
from maniple.engine.launcher import Launcher, WorkerProcess
from maniple.engine.slab import Slab
from maniple.engine.spares import Spares, end
from maniple.engine.waiting import Waiting
from maniple.engine.worker import CLOSE, STACK_SIGNAL, Job
from maniple.engine.worker_handle import WorkerHandle

GRACE_S = 2.0
MOST_FAILED_STARTS = 3
"""Starts of one worker that may fail one after the other: the next would fail, too."""


class WorkerPool:
    """The workers of one engine: a handle each, a launcher, and one place to wait for all of them.

    It knows processes, orders and deadlines; only the engine knows what the orders mean.
    """

    def __init__(
        self, recipe: bytes, num_envs: int, mode: AutoresetMode, config: ProcessConfig
    ) -> None:
        self.config = config
        self.handles = [
            WorkerHandle(k, rows) for k, rows in enumerate(_split(num_envs, config.workers))
        ]
        self.slab: Slab | None = None
        self._owner = os.getpid()
        self._mode = mode
        self._rank = Rank.here()
        self._words = memoryview(b"")
        self._is_closed = False
        self._launcher = Launcher(recipe, config.preload)
        self._spares = Spares(config.spares)
        self._waiting = Waiting(self.handles)
        self.wait, self.wake = self._waiting.wait, self._waiting.wake
        self.has_answered = self._waiting.has_answered
        self.overdue = self._waiting.overdue

    def share(self, slab: Slab) -> None:
        """Use a slab from now on."""
        self.slab = slab
        self._words = slab.words
        self._waiting.share(slab.words)

    def deadline(self) -> float:
        """When an order that is given now must be done, on the monotonic clock."""
        return monotonic() + self.config.step_timeout_s

    def check_owner(self) -> None:
        """Refuse to give orders to another process's workers.

        Raises:
            ClosedError: This process was forked from the one that made the environments.
        """
        if os.getpid() != self._owner:
            raise ClosedError(
                f"These environments belong to process {self._owner}, and this is a fork of it: "
                "make new ones here."
            )

    def launch(self, handle: WorkerHandle, seeds: tuple[int | None, ...] = ()) -> None:
        """Start a worker for a handle, or take a spare; it sends 'ready' when it can take orders.

        The first workers send 'built' before, and wait for `send_slab`.
        """
        slab = self.slab
        if slab is not None:
            self.resume(handle)
        job = self._job(handle, seeds)
        process = self._spare_for(job) if slab is not None else None
        if process is None:
            process = self._launcher.start(job, None if slab is None else slab.fd)
        handle.adopt(process)
        self._waiting.watch(handle)
        if slab is not None:
            self.fill_spares()

    def _job(self, handle: WorkerHandle, seeds: tuple[int | None, ...]) -> Job:
        return Job(
            worker=handle.index,
            first_row=handle.rows.start,
            rows=handle.num_rows,
            rank=self._rank.rank,
            mode=self._mode,
            shape=self.slab.shape if self.slab else None,
            seeds=seeds,
            last_order=handle.order,
            cpus=self.config.cpus_of(handle.index, self._rank.cpus(), self._rank.is_placed),
            must_pin=bool(self.config.pin_cpus),
            path=tuple(sys.path),
            environment=self.config.environment,
            is_fresh=self.config.is_fresh,
        )

    def send_slab(self, handle: WorkerHandle, deadline: float) -> None:
        """Let a worker that has built its environments begin."""
        assert handle.channel is not None
        self._send_job(handle.channel, self._job(handle, ()), deadline)

    def _send_job(self, channel: Channel, job: Job, deadline: float) -> None:
        assert self.slab is not None
        channel.send(job, deadline=deadline)
        channel.send_fd(self.slab.fd, deadline)

    def fill_spares(self) -> None:
        """Start the spares that are missing, without waiting for them."""
        self._spares.fill(self._start_spare)

    def _start_spare(self) -> WorkerProcess:
        """Start a worker that is told later which rows are its own."""
        job = self._job(self.handles[0], ())
        return self._launcher.start(replace(job, shape=None, cpus=()))

    def _spare_for(self, job: Job) -> WorkerProcess | None:
        """Give a spare its rows; None: there is none that fits."""
        assert self.slab is not None
        if job.rows != self.handles[0].num_rows:
            return None
        process = self._spares.take(self.slab.shape.contract)
        if process is None:
            return None
        try:
            self._send_job(process.channel, job, monotonic() + GRACE_S)
        except (EOFError, ChannelTimeout):
            end(process)
            return None
        return process

    def receive_start(self, handle: WorkerHandle, wanted: str, deadline: float) -> Any:
        """Wait for a message of a worker that starts.

        Raises:
            WorkerDied: It failed, ended or sent nothing in time.
            ManipleError: What was asked for cannot be made; the worker's own error.
        """
        assert handle.channel is not None
        try:
            kind, value = handle.channel.receive(deadline=deadline)
        except ChannelTimeout:
            handle.kill(STACK_SIGNAL)
            sleep(0.05)
            raise WorkerDied(
                f"Worker {handle.index} (rows {handle.row_names}) did not start in "
                f"{self.config.start_timeout_s:g} s.\n{handle.stack_dump()}"
            ) from None
        except EOFError:
            raise WorkerDied(
                f"Worker {handle.index} (rows {handle.row_names}) ended while it started: "
                f"{self._cause(handle)}.\n{handle.stack_dump()}"
            ) from None
        if kind == "refused":
            raise unpack_error(value)
        if kind == "failed":
            raise WorkerDied(
                f"Worker {handle.index} could not make its environments (rows {handle.row_names}):"
                f"\n{value}"
            )
        assert kind == wanted, f"worker {handle.index} sent {kind!r}, not {wanted!r}"
        return value

    def post(
        self, handle: WorkerHandle, opcode: int, buffer: int, due: float, chunk: int = 0
    ) -> None:
        """Write an order; `wait` wakes a worker that sleeps."""
        words, base = self._words, handle.base
        words[base + layout.OPCODE] = opcode
        words[base + layout.BUFFER] = buffer
        words[base + layout.CHUNK] = chunk
        handle.due = due
        order = handle.order + 1
        # From here on it is given: `resume` finds it in the slab if we are interrupted now.
        words[handle.order_at] = order
        handle.buffer = buffer
        handle.order = order

    def post_with_message(
        self, handle: WorkerHandle, opcode: int, buffer: int, message: bytes, chunk: int = 0
    ) -> None:
        """Write an order that comes with a message.

        Raises:
            EOFError: The worker has ended.
            ChannelTimeout: It did not take all of the message in time.
        """
        channel, due = handle.channel, self.deadline()
        assert channel is not None
        data = pack(message)
        # If we are interrupted in between, the worker waits for the rest: it must be replaced.
        channel.is_whole = False
        self.post(handle, opcode, buffer, due, chunk)
        self.wake([handle])
        channel.send_packed(data, handle.order, due)

    def is_settled(self, handle: WorkerHandle) -> bool:
        """Whether nothing of an earlier order is left to do or to read."""
        return (
            handle.collected == self._words[handle.order_at]
            and handle.channel is not None
            and handle.channel.is_whole
        )

    def resume(self, handle: WorkerHandle) -> None:
        """Take over an order that was given just before an interrupt."""
        order = self._words[handle.order_at]
        if order != handle.order:
            handle.buffer = self._words[handle.base + layout.BUFFER]
            handle.order = order

    def collect(self, handle: WorkerHandle) -> tuple[str, Any]:
        """Return what a worker has to say of its order, kind and value.

        Raises:
            EOFError: It ended before it sent all of it.
            ChannelTimeout: It did not send all of it in time.
        """
        words, base = self._words, handle.base
        message = ("nothing", None)
        if words[base + layout.HAS_MESSAGE]:
            assert handle.channel is not None
            message = handle.channel.receive(handle.order, self.deadline())
        handle.exec_times.add(words[base + layout.EXEC_NS] * 1e-9)
        if message[0] == "refused":
            # Nothing was written.
            handle.buffer = handle.good_buffer
        handle.good_buffer = handle.buffer
        handle.collected = handle.order
        return message

    def exec_ns(self, handle: WorkerHandle) -> int:
        """How long the last order took."""
        return self._words[handle.base + layout.EXEC_NS]

    def give_up(self, handle: WorkerHandle) -> None:
        """Make sure that a worker has ended, and close its descriptors."""
        handle.kill()
        self._waiting.forget(handle)
        handle.has_exited(GRACE_S)
        handle.close_descriptors()

    def make_ready(self, handle: WorkerHandle, seeds: tuple[int | None, ...]) -> None:
        """Wait for a replacement; one that fails at once is replaced again, within the budget."""
        failed = 0
        while not handle.is_ready:
            # An interrupt may have come just after its message.
            if self._words[handle.base + layout.READY] == handle.pid:
                handle.is_ready = True
                return
            try:
                self.receive_start(handle, "ready", monotonic() + self.config.start_timeout_s)
            except ManipleError:
                self.give_up(handle)
                handle.count_failure()
                failed += 1
                if failed == MOST_FAILED_STARTS or self.is_beyond_help(handle):
                    raise
                self.launch(handle, seeds)
                continue
            handle.is_ready = True

    def is_beyond_help(self, handle: WorkerHandle) -> bool:
        """Whether a worker has failed too often of late."""
        return handle.recent_failures(self.config.restart_window_s) > self.config.max_restarts

    def diagnose(self, handle: WorkerHandle, how: str) -> tuple[str, str]:
        """Return why a worker failed, and the traceback or stack that it left."""
        if how == "hung":
            handle.kill(STACK_SIGNAL)
            until = perf_counter() + 0.06
            while not handle.stack_dump() and perf_counter() < until:
                sleep(0.005)
            cause = f"gave no answer in {self.config.step_timeout_s:g} s and was killed"
        elif how == "interrupted":
            cause = "was replaced: an interrupt came in the middle of a message"
        else:
            cause = self._cause(handle)
        texts = (self._sent_traceback(handle), handle.stack_dump())
        return cause, "\n".join(text for text in texts if text)

    def _sent_traceback(self, handle: WorkerHandle) -> str:
        """Return the traceback that a worker sent before it ended, if it sent one."""
        channel = handle.channel
        if channel is None or not channel.is_whole:
            return ""
        try:
            while True:
                message = channel.receive(deadline=monotonic())
                if isinstance(message, tuple) and message[0] in ("error", "failed"):
                    return str(message[1]).strip()
        except (EOFError, ChannelTimeout, OSError):
            return ""

    def _cause(self, handle: WorkerHandle) -> str:
        status = self._launcher.exit_status(handle.pid)
        if status is None:
            origin = " together with the process that it was forked from"
            return f"ended{'' if self._launcher.is_zygote_alive else origin}"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        if status == 4:
            return "raised"
        return f"exited with code {status}"

    def close(self) -> None:
        """Stop every worker and all that it started; a second call does nothing.

        A process that was forked from the one that made them leaves them alone.
        """
        if self._is_closed or os.getpid() != self._owner:
            return
        self._is_closed = True
        alive = [handle for handle in self.handles if handle.is_alive]
        try:
            self._ask_to_end(alive)
        finally:
            for handle in alive:
                handle.kill()
            for handle in alive:
                if handle.has_exited(GRACE_S):
                    # By then the zygote has ended what the environments had started.
                    self._launcher.exit_status(handle.pid)
                handle.close_descriptors()
            self._spares.close()
            self._waiting.close()
            self._launcher.close()

    def _ask_to_end(self, handles: list[WorkerHandle]) -> None:
        if self.slab is None:
            return
        ready = [handle for handle in handles if handle.is_ready and not handle.has_exited()]
        for handle in ready:
            self.resume(handle)
            self.post(handle, CLOSE, handle.buffer, 0.0)
        self.wake(ready)
        until = monotonic() + GRACE_S
        for handle in ready:
            handle.has_exited(max(0.0, until - monotonic()))


def how_it_failed(error: Exception) -> str:
    """Say in a word what became of a worker that a channel gave up."""
    return "hung" if isinstance(error, ChannelTimeout) else "ended"


def unpack_error(data: bytes) -> Exception:
    """Return the error that a worker packed; as text, if only the worker knows its class."""
    try:
        return pickle.loads(data)  # noqa: S301  (from our own worker)
    except Exception as error:
        return ManipleError(f"A worker raised an error that cannot be unpickled here: {error}")


def _split(num_envs: int, workers: int) -> list[slice]:
    """Spread rows evenly over workers, in order."""
    edges = [num_envs * k // workers for k in range(workers + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]
