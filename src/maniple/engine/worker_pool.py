"""Start, wake, await and replace the worker processes of one engine."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import sys
from itertools import pairwise
from time import monotonic, perf_counter, perf_counter_ns, sleep
from typing import Any

from gymnasium.vector import AutoresetMode

from maniple.core.errors import ManipleError, WorkerDied
from maniple.core.rank import Rank
from maniple.engine import slab as layout
from maniple.engine.channel import ChannelTimeout, receive_message
from maniple.engine.config import ProcessConfig
from maniple.engine.doorbell import MOST_SPIN_NS, RECHECK_S, SPIN_NS, drain, fence, ring
from maniple.engine.slab import Slab
from maniple.engine.worker import CLOSE, STACK_SIGNAL, Job
from maniple.engine.worker_handle import WorkerHandle
from maniple.engine.zygote import SHARED

PRELOAD = ("numpy", "gymnasium", "cloudpickle", "maniple.engine.worker")
GRACE_S = 2.0


class WorkerPool:
    """The workers of one engine: a handle each, one zygote, and one place to wait for all of them.

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
        self._recipe = recipe
        self._mode = mode
        self._rank = Rank.here()
        self._epoll = select.epoll()
        self._words = memoryview(b"")
        self._waits_at = config.workers * layout.WORDS + layout.WAITS
        self._usual_ns = 0
        self._spin_ns = SPIN_NS
        self._is_closed = False
        self._zygote = SHARED.borrow((*PRELOAD, *config.preload))

    def share(self, slab: Slab) -> None:
        """Use a slab from now on."""
        self.slab = slab
        self._words = slab.words

    def deadline(self) -> float:
        """When an order that is given now must be done, on the monotonic clock."""
        return monotonic() + self.config.step_timeout_s

    def launch(self, handle: WorkerHandle, seeds: tuple[int, ...] = ()) -> None:
        """Start a worker for a handle; it sends 'ready' when it can take orders."""
        if not self._zygote.is_alive:
            self._zygote = SHARED.renew((*PRELOAD, *self.config.preload))
        slab = self.slab
        job = Job(
            recipe=self._recipe,
            worker=handle.index,
            first_row=handle.rows.start,
            rows=handle.num_rows,
            rank=self._rank.rank,
            mode=self._mode,
            shape=slab.shape if slab else None,
            seeds=seeds,
            last_order=handle.order,
            cpus=self.config.cpus_of(handle.index, self._rank.cpus(), self._rank.is_placed),
            must_pin=bool(self.config.pin_cpus),
            path=tuple(sys.path),
            environment=self.config.environment,
            is_fresh=self.config.is_fresh,
        )
        ours: list[socket.socket] = []
        theirs: list[socket.socket] = []
        crash_log = -1
        try:
            for _ in range(2):
                one, other = socket.socketpair()
                ours.append(one)
                theirs.append(other)
            crash_log = os.memfd_create("maniple-crash-log", os.MFD_CLOEXEC)
            fds = [*(end.fileno() for end in theirs), crash_log]
            pid = self._zygote.fork(pickle.dumps(job), [*fds, slab.fd] if slab else fds)
            handle.adopt(pid, ours[0], ours[1], crash_log)
        except BaseException as error:
            for end in ours:
                end.close()
            if crash_log >= 0 and handle.crash_log != crash_log:
                os.close(crash_log)
            if isinstance(error, OSError):
                raise ManipleError(
                    f"Cannot start worker {handle.index}: {error.strerror}. "
                    "Raise the limit of open files ('ulimit -n 4096') or use fewer workers."
                ) from None
            raise
        finally:
            for end in theirs:
                end.close()
        self._epoll.register(ours[1].fileno(), select.EPOLLIN)
        self._epoll.register(handle.pidfd, select.EPOLLIN)

    def receive_start(self, handle: WorkerHandle, wanted: str, deadline: float) -> Any:
        """Wait for a message of a worker that starts.

        Raises:
            WorkerDied: It failed, ended or sent nothing in time.
            ManipleError: What was asked for cannot be made; the worker's own error.
        """
        assert handle.channel is not None
        try:
            kind, value = receive_message(handle.channel, deadline)
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
            raise value
        if kind == "failed":
            raise WorkerDied(
                f"Worker {handle.index} could not make its environments (rows {handle.row_names}):"
                f"\n{value}"
            )
        assert kind == wanted, f"worker {handle.index} sent {kind!r}, not {wanted!r}"
        return value

    def post(self, handle: WorkerHandle, opcode: int, buffer: int, chunk: int = 0) -> None:
        """Write an order; `wait` wakes a worker that sleeps."""
        words, base = self._words, handle.base
        words[base + layout.OPCODE] = opcode
        words[base + layout.BUFFER] = buffer
        words[base + layout.CHUNK] = chunk
        handle.order += 1
        words[handle.order_at] = handle.order

    def has_answered(self, handle: WorkerHandle) -> bool:
        """Whether the last order is done."""
        return self._words[handle.done_at] == handle.order

    def collect(self, handle: WorkerHandle) -> tuple[int, Any]:
        """Return how long an order took (ns), and what the worker reports besides.

        Raises:
            EOFError: It ended before it sent all of it.
            ChannelTimeout: It did not send all of it in time.
        """
        words, base = self._words, handle.base
        took = words[base + layout.EXEC_NS]
        handle.exec_times.add(took * 1e-9)
        if not words[base + layout.HAS_MESSAGE]:
            return took, None
        assert handle.channel is not None
        return took, receive_message(handle.channel, self.deadline())

    def wake(self, handles: list[WorkerHandle]) -> None:
        """Wake the workers that went to sleep before their order came."""
        fence()
        for handle in handles:
            if self._words[handle.sleeps_at] and handle.wake is not None:
                ring(handle.wake)

    def wait(
        self, handles: list[WorkerHandle], deadline: float, enough: int | None = None
    ) -> dict[WorkerHandle, str]:
        """Wake the handles, wait until all (or `enough` rows) have answered.

        Returns:
            Those that never will, and why.
        """
        self.wake(handles)
        start = perf_counter_ns()
        failures = self._spin_and_sleep(handles, deadline, enough, start + self._spin_ns)
        # Spin a little longer than answers usually take. Slow simulators get the shortest spin: a
        # wake-up does not make their steps noticeably longer.
        took = perf_counter_ns() - start
        self._usual_ns += (took - self._usual_ns) >> 3
        is_quick = self._usual_ns < MOST_SPIN_NS
        self._spin_ns = max(SPIN_NS, 2 * self._usual_ns) if is_quick else SPIN_NS
        return failures

    def _spin_and_sleep(
        self, handles: list[WorkerHandle], deadline: float, enough: int | None, until: int
    ) -> dict[WorkerHandle, str]:
        words, yield_core = self._words, os.sched_yield
        may_miss = 0 if enough is None else sum(h.num_rows for h in handles) - enough
        pending = [h for h in handles if words[h.done_at] != h.order]
        while _rows_in(pending) > may_miss:
            for _ in range(8):
                yield_core()
                pending = [h for h in pending if words[h.done_at] != h.order]
                if not pending:
                    return {}
            if perf_counter_ns() > until:
                return self._sleep_until(pending, deadline, may_miss)
        return {}

    def _sleep_until(
        self, pending: list[WorkerHandle], deadline: float, may_miss: int
    ) -> dict[WorkerHandle, str]:
        words, failures = self._words, {}
        try:
            while _rows_in(pending) > may_miss:
                words[self._waits_at] = 1
                fence()
                pending = [h for h in pending if words[h.done_at] != h.order]
                failures |= {h: "ended" for h in pending if h.is_known_dead}
                pending = [h for h in pending if h not in failures]
                if _rows_in(pending) <= may_miss:
                    break
                left = deadline - monotonic()
                if left <= 0:
                    failures |= dict.fromkeys(pending, "hung")
                    break
                events = dict(self._epoll.poll(min(left, RECHECK_S)))
                for handle in pending:
                    assert handle.wake is not None
                    if handle.wake.fileno() in events:
                        drain(handle.wake)
                    # An answer that came just before the worker ended counts.
                    if handle.pidfd in events and words[handle.done_at] != handle.order:
                        failures[handle] = "ended"
                pending = [h for h in pending if h not in failures]
                self._drain_others(events, pending)
        finally:
            words[self._waits_at] = 0
        return failures

    def _drain_others(self, events: dict[int, int], pending: list[WorkerHandle]) -> None:
        """Remove late wake-ups and workers that ended, or epoll would return at once for ever.

        A worker that ends after its answer is replaced when it gets its next order.
        """
        for handle in self.handles:
            if handle in pending or not handle.is_alive:
                continue
            if handle.wake is not None and handle.wake.fileno() in events:
                drain(handle.wake)
            if handle.pidfd in events:
                self._forget(handle)
                handle.is_known_dead = True

    def _forget(self, handle: WorkerHandle) -> None:
        """Stop watching a worker."""
        for fd in (handle.wake.fileno() if handle.wake else -1, handle.pidfd):
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(fd)

    def give_up(self, handle: WorkerHandle) -> None:
        """Make sure that a worker has ended, and close its descriptors."""
        handle.kill()
        self._forget(handle)
        handle.has_exited(GRACE_S)
        handle.close_descriptors()

    def make_ready(self, handle: WorkerHandle, seeds: tuple[int, ...]) -> None:
        """Wait for a replacement; one that fails at once is replaced again, within the budget."""
        while not handle.is_ready:
            try:
                self.receive_start(handle, "ready", monotonic() + self.config.start_timeout_s)
            except ManipleError:
                self.give_up(handle)
                if handle.count_failure(self.config.restart_window_s) > self.config.max_restarts:
                    raise
                self.launch(handle, seeds)
                continue
            handle.is_ready = True

    def diagnose(self, handle: WorkerHandle, how: str) -> tuple[str, str]:
        """Return why a worker failed, and the traceback or stack that it left."""
        if how == "hung":
            handle.kill(STACK_SIGNAL)
            until = perf_counter() + 0.06
            while not handle.stack_dump() and perf_counter() < until:
                sleep(0.005)
            cause = f"gave no answer in {self.config.step_timeout_s:g} s and was killed"
        else:
            cause = self._cause(handle)
        texts = (self._sent_traceback(handle), handle.stack_dump())
        return cause, "\n".join(text for text in texts if text)

    def _sent_traceback(self, handle: WorkerHandle) -> str:
        """Return the traceback that a worker sent before it ended, if it sent one."""
        if handle.channel is None:
            return ""
        try:
            while True:
                message = receive_message(handle.channel, monotonic())
                if isinstance(message, tuple) and message[0] in ("error", "failed"):
                    return str(message[1]).strip()
        except (EOFError, ChannelTimeout, OSError):
            return ""

    def _cause(self, handle: WorkerHandle) -> str:
        status = self._zygote.status(handle.pid)
        if status is None:
            return "ended together with the process that it was forked from"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        if status == 4:
            return "raised"
        return f"exited with code {status}"

    def close(self) -> None:
        """Stop every worker; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        alive = [handle for handle in self.handles if handle.is_alive]
        if self.slab is not None:
            ready = [handle for handle in alive if handle.is_ready and not handle.has_exited()]
            for handle in ready:
                self.post(handle, CLOSE, handle.buffer)
            self.wake(ready)
            until = monotonic() + GRACE_S
            for handle in ready:
                handle.has_exited(max(0.0, until - monotonic()))
        for handle in alive:
            handle.kill()
        for handle in alive:
            handle.has_exited(GRACE_S)
            handle.close_descriptors()
        self._epoll.close()
        SHARED.give_back()


def _split(num_envs: int, workers: int) -> list[slice]:
    """Spread rows evenly over workers, in order."""
    edges = [num_envs * k // workers for k in range(workers + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _rows_in(handles: list[WorkerHandle]) -> int:
    return sum(handle.num_rows for handle in handles)
