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

from maniple.core.errors import ClosedError, ManipleError, WorkerDied
from maniple.core.rank import Rank
from maniple.engine import slab as layout
from maniple.engine.channel import Channel, ChannelTimeout, pack
from maniple.engine.config import ProcessConfig
from maniple.engine.doorbell import MOST_SPIN_NS, RECHECK_S, SPIN_NS, drain, fence, ring
from maniple.engine.slab import Slab
from maniple.engine.worker import CLOSE, STACK_SIGNAL, Job
from maniple.engine.worker_handle import WorkerHandle
from maniple.engine.zygote import SHARED, ZygoteLost

PRELOAD = ("numpy", "gymnasium", "cloudpickle", "maniple.engine.worker")
GRACE_S = 2.0
MOST_FAILED_STARTS = 3
"""Starts of one worker that may fail one after the other: the next would fail, too."""


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
        self._owner = os.getpid()
        # Once for all workers, and whatever its size: only the descriptor is sent.
        self._recipe_fd = _memory_file("maniple-recipe", recipe)
        self._mode = mode
        self._rank = Rank.here()
        self._epoll = select.epoll()
        self._words = memoryview(b"")
        self._waits_at = config.workers * layout.WORDS + layout.WAITS
        self._usual_ns = 0
        self._spin_ns = SPIN_NS
        self._is_closed = False
        self._preload = (*PRELOAD, *config.preload)
        try:
            self._zygote = SHARED.borrow(self._preload)
        except BaseException:
            os.close(self._recipe_fd)
            raise

    def share(self, slab: Slab) -> None:
        """Use a slab from now on."""
        self.slab = slab
        self._words = slab.words

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
        """Start a worker for a handle; it sends 'ready' when it can take orders."""
        slab = self.slab
        if slab is not None:
            self.resume(handle)
        job = Job(
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
        crash_log = job_fd = -1
        try:
            job_fd = _memory_file("maniple-job", pickle.dumps(job))
            for _ in range(2):
                one, other = socket.socketpair()
                ours.append(one)
                theirs.append(other)
            crash_log = os.memfd_create("maniple-crash-log", os.MFD_CLOEXEC)
            fds = [job_fd, self._recipe_fd, *(end.fileno() for end in theirs), crash_log]
            pid, pidfd = self._fork([*fds, slab.fd] if slab else fds)
            handle.adopt(pid, pidfd, Channel(ours[0]), ours[1], crash_log)
        except BaseException as error:
            if handle.crash_log == crash_log >= 0:
                # It was interrupted when all was done.
                handle.kill()
                handle.close_descriptors()
            elif crash_log >= 0:
                os.close(crash_log)
            for end in ours:
                end.close()
            if isinstance(error, OSError):
                raise ManipleError(
                    f"Cannot start worker {handle.index}: {error.strerror}. "
                    "Raise the limit of open files ('ulimit -n 4096') or use fewer workers."
                ) from None
            raise
        finally:
            for end in theirs:
                end.close()
            if job_fd >= 0:
                os.close(job_fd)
        self._epoll.register(ours[1].fileno(), select.EPOLLIN)
        self._epoll.register(handle.pidfd, select.EPOLLIN)

    def _fork(self, fds: list[int]) -> tuple[int, int]:
        """Have a worker forked, by a new zygote if the present one has ended or was stopped."""
        if not self._zygote.is_alive:
            self._zygote = SHARED.renew(self._preload)
        try:
            return self._zygote.fork(fds)
        except ZygoteLost as error:
            self._zygote = SHARED.renew(self._preload, self._zygote)
            try:
                return self._zygote.fork(fds)
            except ZygoteLost:
                raise ManipleError(
                    f"The process that workers are forked from was lost twice: {error}."
                ) from None

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

    def has_answered(self, handle: WorkerHandle) -> bool:
        """Whether the last order is done."""
        return self._words[handle.done_at] == handle.order

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

    def wake(self, handles: list[WorkerHandle]) -> None:
        """Wake the workers that went to sleep before their order came."""
        fence()
        for handle in handles:
            if self._words[handle.sleeps_at] and handle.wake is not None:
                ring(handle.wake)

    def wait(
        self, handles: list[WorkerHandle], enough: int | None = None
    ) -> dict[WorkerHandle, str]:
        """Wake the handles, wait until all (or `enough` rows) have answered.

        Returns:
            Those that never will, and why.
        """
        self.wake(handles)
        start = perf_counter_ns()
        failures = self._spin_and_sleep(handles, enough, start + self._spin_ns)
        if enough is not None:
            failures |= self._overdue(handles)
        # Spin a little longer than answers usually take. Slow simulators get the shortest spin: a
        # wake-up does not make their steps noticeably longer.
        took = perf_counter_ns() - start
        self._usual_ns += (took - self._usual_ns) >> 3
        is_quick = self._usual_ns < MOST_SPIN_NS
        self._spin_ns = max(SPIN_NS, 2 * self._usual_ns) if is_quick else SPIN_NS
        return failures

    def _overdue(self, handles: list[WorkerHandle]) -> dict[WorkerHandle, str]:
        """Return workers that nobody waits for at present, and that will not answer any more."""
        found, now = {}, monotonic()
        for handle in handles:
            if self.has_answered(handle):
                continue
            if handle.has_exited() and not self.has_answered(handle):
                found[handle] = "ended"
            elif now > handle.due:
                found[handle] = "hung"
        return found

    def _spin_and_sleep(
        self, handles: list[WorkerHandle], enough: int | None, until: int
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
                return self._sleep_until(pending, may_miss)
        return {}

    def _sleep_until(self, pending: list[WorkerHandle], may_miss: int) -> dict[WorkerHandle, str]:
        words = self._words
        failures: dict[WorkerHandle, str] = {}
        try:
            while _rows_in(pending) > may_miss:
                words[self._waits_at] = 1
                fence()
                pending = [h for h in pending if words[h.done_at] != h.order]
                failures |= {h: "ended" for h in pending if h.is_known_dead}
                pending = [h for h in pending if h not in failures]
                if _rows_in(pending) <= may_miss:
                    break
                left = min(handle.due for handle in pending) - monotonic()
                if left <= 0:
                    now = monotonic()
                    failures |= {handle: "hung" for handle in pending if handle.due <= now}
                    pending = [h for h in pending if h not in failures]
                    continue
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
                handle.is_known_dead = True
                self._forget(handle)

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
        status = self._zygote.status(handle.pid)
        if status is None:
            origin = " together with the process that it was forked from"
            return f"ended{'' if self._zygote.is_alive else origin}"
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
                    self._zygote.status(handle.pid)
                handle.close_descriptors()
            self._epoll.close()
            os.close(self._recipe_fd)
            SHARED.give_back()

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


def unpack_error(data: bytes) -> Exception:
    """Return the error that a worker packed; as text, if only the worker knows its class."""
    try:
        return pickle.loads(data)  # noqa: S301  (from our own worker)
    except Exception as error:
        return ManipleError(f"A worker raised an error that cannot be unpickled here: {error}")


def _memory_file(name: str, data: bytes) -> int:
    """Return the descriptor of a file without a name that holds some bytes."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        return fd
    except BaseException as error:
        os.close(fd)
        if isinstance(error, OSError):
            raise ManipleError(
                f"Cannot reserve {len(data) / 2**20:.0f} MB of memory: {error.strerror}."
            ) from None
        raise


def _split(num_envs: int, workers: int) -> list[slice]:
    """Spread rows evenly over workers, in order."""
    edges = [num_envs * k // workers for k in range(workers + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _rows_in(handles: list[WorkerHandle]) -> int:
    return sum(handle.num_rows for handle in handles)
