"""What the parent knows of one worker: its rows, its process, its channels, its past."""

from __future__ import annotations

import signal
import socket
from collections import deque
from time import monotonic

from maniple.engine import slab as layout
from maniple.engine.channel import Channel
from maniple.engine.launcher import WorkerProcess
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
        self.is_resetting = False
        """Whether it resets rows while those of the other workers go on."""
        self.is_ready = False
        self.is_alive = False
        self.is_known_dead = False
        """Whether it was seen to end while no answer was expected of it."""
        self.exec_times = Times()
        self.failure_times: deque[float] = deque()
        self.restarts = 0
        self._process: WorkerProcess | None = None
        # The process's, at hand: a step looks at them for every worker.
        self.pid = self.pidfd = -1
        self.channel: Channel | None = None
        self.wake: socket.socket | None = None

    @property
    def num_rows(self) -> int:
        """How many environments it has."""
        return self.rows.stop - self.rows.start

    def adopt(self, process: WorkerProcess) -> None:
        """Take a process that was started for its rows."""
        self._process = process
        self.pid, self.pidfd = process.pid, process.pidfd
        self.channel, self.wake = process.channel, process.wake
        self.collected = self.order
        self.is_alive, self.is_ready, self.is_known_dead = True, False, False

    @property
    def row_numbers(self) -> range:
        """Its rows, one by one."""
        return range(self.rows.start, self.rows.stop)

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
        return self._process is None or self._process.has_exited(patience_s)

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Send the process a signal, if there is one."""
        if self._process is not None:
            self._process.kill(signum)

    def stack_dump(self) -> str:
        """Read the stack that a crash or STACK_SIGNAL left."""
        return "" if self._process is None else self._process.stack_dump()

    def close_descriptors(self) -> None:
        """Close every descriptor of the process."""
        process, self._process = self._process, None
        self.is_alive = self.is_ready = self.is_resetting = False
        self.channel = self.wake = None
        self.pidfd = -1
        if process is not None:
            process.close()

    def count_failure(self) -> None:
        """Count a failure."""
        self.failure_times.append(monotonic())

    def recent_failures(self, window_s: float) -> int:
        """Return how many failures there were within the window."""
        now = monotonic()
        while self.failure_times and now - self.failure_times[0] > window_s:
            self.failure_times.popleft()
        return len(self.failure_times)
