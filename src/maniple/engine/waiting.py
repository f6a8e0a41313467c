"""Wait for the answers of worker processes: spin a little, then sleep."""

from __future__ import annotations

import contextlib
import os
import select
from time import monotonic, perf_counter_ns

from maniple.engine import slab as layout
from maniple.engine.doorbell import MOST_SPIN_NS, RECHECK_S, SPIN_NS, drain, fence, ring
from maniple.engine.worker_handle import WorkerHandle


class Waiting:
    """One place to wait for all workers of an engine, and to see which of them have ended."""

    def __init__(self, handles: list[WorkerHandle]) -> None:
        self._handles = handles
        self._epoll = select.epoll()
        self._words = memoryview(b"")
        self._waits_at = len(handles) * layout.WORDS + layout.WAITS
        self._usual_ns = 0
        self._spin_ns = SPIN_NS

    def share(self, words: memoryview) -> None:
        """Read the orders and answers in these words from now on."""
        self._words = words

    def watch(self, handle: WorkerHandle) -> None:
        """Notice when a worker rings or ends."""
        assert handle.wake is not None
        self._epoll.register(handle.wake.fileno(), select.EPOLLIN)
        self._epoll.register(handle.pidfd, select.EPOLLIN)

    def forget(self, handle: WorkerHandle) -> None:
        """Stop watching a worker."""
        for fd in (handle.wake.fileno() if handle.wake else -1, handle.pidfd):
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(fd)

    def close(self) -> None:
        """Let go of the place to wait at."""
        self._epoll.close()

    def has_answered(self, handle: WorkerHandle) -> bool:
        """Whether the last order is done."""
        return self._words[handle.done_at] == handle.order

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
            failures |= self.overdue(handles)
        # Spin a little longer than answers usually take. Slow simulators get the shortest spin: a
        # wake-up does not make their steps noticeably longer.
        took = perf_counter_ns() - start
        self._usual_ns += (took - self._usual_ns) >> 3
        is_quick = self._usual_ns < MOST_SPIN_NS
        self._spin_ns = max(SPIN_NS, 2 * self._usual_ns) if is_quick else SPIN_NS
        return failures

    def overdue(self, handles: list[WorkerHandle]) -> dict[WorkerHandle, str]:
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
        for handle in self._handles:
            if handle in pending or not handle.is_alive:
                continue
            if handle.wake is not None and handle.wake.fileno() in events:
                drain(handle.wake)
            if handle.pidfd in events:
                handle.is_known_dead = True
                self.forget(handle)


def _rows_in(handles: list[WorkerHandle]) -> int:
    return sum(handle.num_rows for handle in handles)
