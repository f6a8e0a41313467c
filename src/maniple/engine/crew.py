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
from maniple.engine.config import ProcessConfig
from maniple.engine.gate import MOST_SPIN_NS, RECHECK_S, SPIN_NS, drain, fence, ring
from maniple.engine.hand import Hand
from maniple.engine.slab import Slab
from maniple.engine.talk import Silence, hear
from maniple.engine.worker import CLOSE, STACK_SIGNAL, Job
from maniple.engine.zygote import SHARED

PRELOAD = ("numpy", "gymnasium", "cloudpickle", "maniple.engine.worker")
GRACE_S = 2.0


class Crew:
    """The workers of one engine: a hand each, one zygote, and one place to wait for all of them.

    It knows processes, orders and deadlines; what the orders mean is the engine's business.
    """

    def __init__(
        self, recipe: bytes, num_envs: int, mode: AutoresetMode, config: ProcessConfig
    ) -> None:
        self.config = config
        self.hands = [Hand(k, rows) for k, rows in enumerate(_split(num_envs, config.workers))]
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

    def launch(self, hand: Hand, seeds: tuple[int, ...] = ()) -> None:
        """Start a worker for a hand; it is ready when it says so."""
        if not self._zygote.is_alive:
            self._zygote = SHARED.renew((*PRELOAD, *self.config.preload))
        slab = self.slab
        job = Job(
            recipe=self._recipe,
            worker=hand.index,
            first_row=hand.rows.start,
            rows=hand.num_rows,
            rank=self._rank.rank,
            mode=self._mode,
            shape=slab.shape if slab else None,
            seeds=seeds,
            last_order=hand.order,
            cpus=self.config.cpus_of(hand.index, self._rank.cpus(), self._rank.is_placed),
            must_tie=bool(self.config.pin_cpus),
            path=tuple(sys.path),
            environment=self.config.environment,
            is_fresh=self.config.is_fresh,
        )
        ours: list[socket.socket] = []
        theirs: list[socket.socket] = []
        post_mortem = -1
        try:
            for _ in range(2):
                one, other = socket.socketpair()
                ours.append(one)
                theirs.append(other)
            post_mortem = os.memfd_create("maniple-post-mortem", os.MFD_CLOEXEC)
            fds = [*(end.fileno() for end in theirs), post_mortem]
            pid = self._zygote.fork(pickle.dumps(job), [*fds, slab.fd] if slab else fds)
            hand.adopt(pid, ours[0], ours[1], post_mortem)
        except BaseException as error:
            for end in ours:
                end.close()
            if post_mortem >= 0 and hand.post_mortem != post_mortem:
                os.close(post_mortem)
            if isinstance(error, OSError):
                raise ManipleError(
                    f"Cannot start worker {hand.index}: {error.strerror}. "
                    "Raise the limit of open files ('ulimit -n 4096') or use fewer workers."
                ) from None
            raise
        finally:
            for end in theirs:
                end.close()
        self._epoll.register(ours[1].fileno(), select.EPOLLIN)
        self._epoll.register(hand.pidfd, select.EPOLLIN)

    def hear_start(self, hand: Hand, wanted: str, deadline: float) -> Any:
        """Wait for a worker's word at its start.

        Raises:
            WorkerDied: It failed, ended or said nothing.
            ManipleError: What was asked for cannot be made; told as if it were made here.
        """
        assert hand.channel is not None
        try:
            word, value = hear(hand.channel, deadline)
        except Silence:
            hand.kill(STACK_SIGNAL)
            sleep(0.05)
            raise WorkerDied(
                f"Worker {hand.index} (rows {hand.row_names}) did not start in "
                f"{self.config.start_timeout_s:g} s.\n{hand.last_words()}"
            ) from None
        except EOFError:
            raise WorkerDied(
                f"Worker {hand.index} (rows {hand.row_names}) ended while it started: "
                f"{self._cause(hand)}.\n{hand.last_words()}"
            ) from None
        if word == "refused":
            raise value
        if word == "failed":
            raise WorkerDied(
                f"Worker {hand.index} could not make its environments (rows {hand.row_names}):"
                f"\n{value}"
            )
        assert word == wanted, f"worker {hand.index} said {word!r}, not {wanted!r}"
        return value

    def post(self, hand: Hand, opcode: int, turn: int, chunk: int = 0) -> None:
        """Write an order; `wait` wakes whoever sleeps."""
        words, base = self._words, hand.base
        words[base + layout.OPCODE] = opcode
        words[base + layout.TURN] = turn
        words[base + layout.CHUNK] = chunk
        hand.order += 1
        words[hand.order_at] = hand.order

    def has_answered(self, hand: Hand) -> bool:
        """Whether the last order is done."""
        return self._words[hand.done_at] == hand.order

    def collect(self, hand: Hand) -> tuple[int, Any]:
        """Return how long an order took (ns), and what the worker has to say besides.

        Raises:
            EOFError: It ended before it could say it.
            Silence: It does not.
        """
        words, base = self._words, hand.base
        took = words[base + layout.EXEC_NS]
        hand.exec_times.add(took * 1e-9)
        if not words[base + layout.TALKS]:
            return took, None
        assert hand.channel is not None
        return took, hear(hand.channel, self.deadline())

    def wake(self, hands: list[Hand]) -> None:
        """Ring at the workers that went to sleep before their order came."""
        fence()
        for hand in hands:
            if self._words[hand.sleeps_at] and hand.wake is not None:
                ring(hand.wake)

    def wait(
        self, hands: list[Hand], deadline: float, enough: int | None = None
    ) -> dict[Hand, str]:
        """Wake the hands, wait until all (or `enough` rows) have answered.

        Returns:
            Who never will, and why.
        """
        self.wake(hands)
        start = perf_counter_ns()
        failures = self._spin_and_sleep(hands, deadline, enough, start + self._spin_ns)
        # As long as answers usually take, a little longer; not at all for slow simulators, whose
        # steps are not made noticeably longer by a wake-up.
        took = perf_counter_ns() - start
        self._usual_ns += (took - self._usual_ns) >> 3
        is_quick = self._usual_ns < MOST_SPIN_NS
        self._spin_ns = max(SPIN_NS, 2 * self._usual_ns) if is_quick else SPIN_NS
        return failures

    def _spin_and_sleep(
        self, hands: list[Hand], deadline: float, enough: int | None, until: int
    ) -> dict[Hand, str]:
        words, yield_core = self._words, os.sched_yield
        may_miss = 0 if enough is None else sum(h.num_rows for h in hands) - enough
        pending = [h for h in hands if words[h.done_at] != h.order]
        while _rows_in(pending) > may_miss:
            for _ in range(8):
                yield_core()
                pending = [h for h in pending if words[h.done_at] != h.order]
                if not pending:
                    return {}
            if perf_counter_ns() > until:
                return self._sleep_until(pending, deadline, may_miss)
        return {}

    def _sleep_until(self, pending: list[Hand], deadline: float, may_miss: int) -> dict[Hand, str]:
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
                for hand in pending:
                    assert hand.wake is not None
                    if hand.wake.fileno() in events:
                        drain(hand.wake)
                    # An answer may have come just before the death: then it counts.
                    if hand.pidfd in events and words[hand.done_at] != hand.order:
                        failures[hand] = "ended"
                pending = [h for h in pending if h not in failures]
                self._drain_others(events, pending)
        finally:
            words[self._waits_at] = 0
        return failures

    def _drain_others(self, events: dict[int, int], pending: list[Hand]) -> None:
        """Take late wake-ups and early deaths out of the way, or they would wake us for ever.

        A worker that dies after its answer is found dead when it gets its next order.
        """
        for hand in self.hands:
            if hand in pending or not hand.is_alive:
                continue
            if hand.wake is not None and hand.wake.fileno() in events:
                drain(hand.wake)
            if hand.pidfd in events:
                self._forget(hand)
                hand.is_known_dead = True

    def _forget(self, hand: Hand) -> None:
        """Wait for nothing more from a worker."""
        for fd in (hand.wake.fileno() if hand.wake else -1, hand.pidfd):
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(fd)

    def give_up(self, hand: Hand) -> None:
        """Make sure that a worker is gone, and drop its descriptors."""
        hand.kill()
        self._forget(hand)
        hand.has_exited(GRACE_S)
        hand.let_go()

    def make_ready(self, hand: Hand, seeds: tuple[int, ...]) -> None:
        """Wait for a replacement; one that fails at once is replaced again, within the budget."""
        while not hand.is_ready:
            try:
                self.hear_start(hand, "ready", monotonic() + self.config.start_timeout_s)
            except ManipleError:
                self.give_up(hand)
                if hand.count_death(self.config.restart_window_s) > self.config.max_restarts:
                    raise
                self.launch(hand, seeds)
                continue
            hand.is_ready = True

    def evidence(self, hand: Hand, how: str) -> tuple[str, str]:
        """Return the cause of a death in words, and the traceback or stack that was left."""
        if how == "hung":
            hand.kill(STACK_SIGNAL)
            until = perf_counter() + 0.06
            while not hand.last_words() and perf_counter() < until:
                sleep(0.005)
            cause = f"gave no answer in {self.config.step_timeout_s:g} s and was killed"
        else:
            cause = self._cause(hand)
        texts = (self._told_error(hand), hand.last_words())
        return cause, "\n".join(text for text in texts if text)

    def _told_error(self, hand: Hand) -> str:
        """Fetch the traceback that a worker sent before it went, if it did."""
        if hand.channel is None:
            return ""
        try:
            while True:
                message = hear(hand.channel, monotonic())
                if isinstance(message, tuple) and message[0] in ("error", "failed"):
                    return str(message[1]).strip()
        except (EOFError, Silence, OSError):
            return ""

    def _cause(self, hand: Hand) -> str:
        status = self._zygote.status(hand.pid)
        if status is None:
            return "ended together with the process that it was forked from"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        if status == 4:
            return "raised"
        return f"exited with code {status}"

    def close(self) -> None:
        """Stop every worker; whatever has happened before, and how often it is called."""
        if self._is_closed:
            return
        self._is_closed = True
        alive = [hand for hand in self.hands if hand.is_alive]
        if self.slab is not None:
            ready = [hand for hand in alive if hand.is_ready and not hand.has_exited()]
            for hand in ready:
                self.post(hand, CLOSE, hand.turn)
            self.wake(ready)
            until = monotonic() + GRACE_S
            for hand in ready:
                hand.has_exited(max(0.0, until - monotonic()))
        for hand in alive:
            hand.kill()
        for hand in alive:
            hand.has_exited(GRACE_S)
            hand.let_go()
        self._epoll.close()
        SHARED.give_back()


def _split(num_envs: int, workers: int) -> list[slice]:
    """Spread rows evenly over workers, in order."""
    edges = [num_envs * k // workers for k in range(workers + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _rows_in(hands: list[Hand]) -> int:
    return sum(hand.num_rows for hand in hands)
