"""What the parent knows of one worker: its rows, its process, its channels, its past."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections import deque
from time import monotonic

from maniple.engine import slab as layout
from maniple.engine.channel import Channel
from maniple.engine.stats import Times


class WorkerHandle:
    """One worker, as long as it lives and through all its replacements."""

    def __init__(self, index: int, rows: slice) -> None:
        self.index = index
        self.rows = rows
        base = index * layout.WORDS
        self.order_at, self.done_at = base + layout.ORDER, base + layout.DONE
        self.base, self.sleeps_at = base, base + layout.SLEEPS
        self.order = 0
        self.collected = 0
        """The last order of which everything has been read."""
        self.due = 0.0
        """When its order must be done, on the monotonic clock."""
        self.buffer = 0
        """Which set of arrays its last order writes."""
        self.good_buffer = 0
        """Which set of arrays holds its last complete step."""
        self.owed: str | None = None
        """Why its rows were lost, as long as no step has reported that."""
        self.is_sent = False
        """Whether an order of send() waits for recv()."""
        self.is_ready = False
        self.is_alive = False
        self.is_known_dead = False
        """Whether it was seen to end while no answer was expected of it."""
        self.exec_times = Times()
        self.failure_times: deque[float] = deque()
        self.restarts = 0
        self.pid = -1
        self.pidfd = -1
        self.crash_log = -1
        self.channel: Channel | None = None
        self.wake: socket.socket | None = None

    @property
    def num_rows(self) -> int:
        """How many environments it has."""
        return self.rows.stop - self.rows.start

    def adopt(
        self, pid: int, pidfd: int, channel: Channel, wake: socket.socket, crash_log: int
    ) -> None:
        """Take a process that was just started."""
        self.pid, self.pidfd = pid, pidfd
        self.channel, self.wake, self.crash_log = channel, wake, crash_log
        self.collected = self.order
        self.is_alive, self.is_ready, self.is_known_dead = True, False, False

    @property
    def row_names(self) -> str:
        """Its rows, as people write them: 3 or 3-5."""
        first, last = self.rows.start, self.rows.stop - 1
        return str(first) if first == last else f"{first}-{last}"

    def has_row(self, row: int) -> bool:
        """Whether a row is one of its rows."""
        return self.rows.start <= row < self.rows.stop

    def has_exited(self, patience_s: float = 0.0) -> bool:
        """Whether the process has ended, waiting for that a little."""
        if self.pidfd < 0:
            return True
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(patience_s * 1000))

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Send a signal through the pidfd: never to another process that got the same id."""
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signum)

    def stack_dump(self) -> str:
        """Read the stack that a crash or STACK_SIGNAL left in the crash log."""
        if self.crash_log < 0:
            return ""
        size = os.fstat(self.crash_log).st_size
        return os.pread(self.crash_log, min(size, 1 << 16), 0).decode(errors="replace").strip()

    def close_descriptors(self) -> None:
        """Close every descriptor of the process."""
        for name in ("channel", "wake"):
            end = getattr(self, name)
            if end is not None:
                end.close()
                setattr(self, name, None)
        for name in ("pidfd", "crash_log"):
            fd = getattr(self, name)
            if fd >= 0:
                os.close(fd)
                setattr(self, name, -1)
        self.is_alive = self.is_ready = False

    def count_failure(self) -> None:
        """Count a failure."""
        self.failure_times.append(monotonic())

    def recent_failures(self, window_s: float) -> int:
        """Return how many failures there were within the window."""
        now = monotonic()
        while self.failure_times and now - self.failure_times[0] > window_s:
            self.failure_times.popleft()
        return len(self.failure_times)
