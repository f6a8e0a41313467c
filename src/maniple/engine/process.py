"""Step environments in worker processes that share one slab, and survive their deaths."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic, perf_counter, perf_counter_ns, sleep
from typing import Any

import cloudpickle
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ManipleError, WorkerDied
from maniple.core.group import Contract, Recipe
from maniple.core.rank import Rank
from maniple.core.seeds import fresh_seed, reborn_seed
from maniple.core.step import StepArrays
from maniple.engine import slab as layout
from maniple.engine.cohort import Final
from maniple.engine.gate import RECHECK_S, SPIN_NS, drain, fence, ring
from maniple.engine.hand import Hand
from maniple.engine.slab import Slab, SlabShape
from maniple.engine.stats import Times
from maniple.engine.talk import Silence, hear, say
from maniple.engine.worker import CHUNK, CLOSE, RESET, STACK_SIGNAL, STEP, TOUCH, Job
from maniple.engine.zygote import SHARED

PRELOAD = ("numpy", "gymnasium", "cloudpickle", "maniple.engine.worker")
ON_RESTART = ("block", "mask")


@dataclass(frozen=True)
class ProcessConfig:
    """How workers are run, watched and replaced."""

    workers: int = 1
    """Processes; the environments are spread evenly over them."""

    step_timeout_s: float = 60.0
    """A worker that has not answered by then is taken for hung, and replaced."""

    start_timeout_s: float = 120.0
    """How long a worker may take to build its environments."""

    max_restarts: int = 10
    """Replacements of one worker within `restart_window_s`; one more raises WorkerDied."""

    restart_window_s: float = 60.0
    """The time in which `max_restarts` are counted."""

    on_restart: str = "block"
    """block: a step waits for the replacement (reproducible); mask: its rows pause meanwhile."""

    max_chunk: int = 64
    """Longest action chunk that the slab has room for."""

    pin_cpus: bool = False
    """Tie each worker to a core of this rank's share."""

    preload: tuple[str, ...] = ()
    """Modules that every worker will need: imported once, before any is forked."""

    environment: dict[str, str] = field(default_factory=dict)
    """Variables set in the workers."""

    def __post_init__(self) -> None:
        if self.on_restart not in ON_RESTART:
            raise BadConfig(f"on_restart is {self.on_restart!r}; it may be one of: {ON_RESTART}.")
        for name in ("workers", "max_chunk"):
            if getattr(self, name) < 1:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be 1 or larger.")
        for name in ("step_timeout_s", "start_timeout_s"):
            if not getattr(self, name) > 0:
                raise BadConfig(f"{name} is {getattr(self, name)}; it must be above 0.")


class ProcessEngine:
    """Workers forked from a zygote, one slab, no lock, and a deadline for everything."""

    def __init__(
        self, recipe: Recipe, num_envs: int, mode: AutoresetMode, config: ProcessConfig
    ) -> None:
        if config.workers > num_envs:
            raise BadConfig(
                f"{config.workers} workers for {num_envs} environments; use at most {num_envs}."
            )
        self.num_envs = num_envs
        self.workers = config.workers
        self.mode = mode
        self.config = config
        self.turn = 0
        self.exec_times = Times()
        self.last_exec_s = 0.0
        self._rank = Rank.here()
        self._recipe = cloudpickle.dumps(recipe)
        self._hands = [Hand(k, rows) for k, rows in enumerate(_split(num_envs, config.workers))]
        self._epoll = select.epoll()
        self._seeds: list[int | None] = [None] * num_envs
        self._remarks: dict[int, dict[str, Any]] = {}
        self._finals: list[Final] = []
        self._is_closed = False
        self._slab: Slab | None = None
        self._zygote = SHARED.borrow((*PRELOAD, *config.preload))
        self._finalizer = weakref.finalize(self, _abandon, self._hands)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    # Life ---------------------------------------------------------------------------------

    def _start(self) -> None:
        deadline = monotonic() + self.config.start_timeout_s
        for hand in self._hands:
            self._launch(hand)
        contracts = [self._hear_start(hand, "built", deadline) for hand in self._hands]
        self.contract: Contract = contracts[0]
        for hand, contract in zip(self._hands, contracts, strict=True):
            if contract.observation != self.contract.observation:
                raise BadConfig(
                    f"Row {hand.rows.start} has another observation space than row 0: "
                    f"{contract.observation} and {self.contract.observation}."
                )
        shape = SlabShape(self.contract, self.num_envs, self.workers, self.config.max_chunk)
        self._slab = Slab(shape)
        self.turns: list[StepArrays] = self._slab.turns
        self._words = self._slab.words
        self._waits_at = self.workers * layout.WORDS + layout.WAITS
        for hand in self._hands:
            assert hand.channel is not None
            say(hand.channel, shape, deadline)
            socket.send_fds(hand.channel, [b"s"], [self._slab.fd])
        for hand in self._hands:
            self._hear_start(hand, "ready", deadline)
            hand.is_ready = True

    def _launch(self, hand: Hand) -> None:
        """Start a worker for a hand; it is ready when it says so."""
        if not self._zygote.is_alive:
            self._zygote = SHARED.renew((*PRELOAD, *self.config.preload))
        cpus = self._rank.cpus()
        slab = self._slab
        job = Job(
            recipe=self._recipe,
            worker=hand.index,
            first_row=hand.rows.start,
            rows=hand.num_rows,
            rank=self._rank.rank,
            mode=self.mode,
            shape=slab.shape if slab else None,
            seeds=self._reborn_seeds(hand) if slab else (),
            last_order=hand.order,
            cpus=(cpus[hand.index % len(cpus)],) if self.config.pin_cpus else (),
            path=tuple(sys.path),
            environment=self.config.environment,
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

    def _hear_start(self, hand: Hand, wanted: str, deadline: float) -> Any:
        """Wait for a worker's word at its start.

        Raises:
            WorkerDied: It failed, ended or said nothing.
        """
        assert hand.channel is not None
        try:
            word, value = hear(hand.channel, deadline)
        except Silence:
            hand.kill(STACK_SIGNAL)
            sleep(0.05)
            raise WorkerDied(
                f"Worker {hand.index} (rows {_names(hand.rows)}) did not start in "
                f"{self.config.start_timeout_s:g} s.\n{hand.last_words()}"
            ) from None
        except EOFError:
            raise WorkerDied(
                f"Worker {hand.index} (rows {_names(hand.rows)}) ended while it started: "
                f"{self._cause(hand)}.\n{hand.last_words()}"
            ) from None
        if word == "failed":
            raise WorkerDied(
                f"Worker {hand.index} could not make its environments (rows {_names(hand.rows)}):"
                f"\n{value}"
            )
        assert word == wanted, f"worker {hand.index} said {word!r}, not {wanted!r}"
        return value

    def close(self) -> None:
        """Stop every worker; whatever has happened before, and how often it is called."""
        if self._is_closed:
            return
        self._is_closed = True
        alive = [hand for hand in self._hands if hand.is_alive]
        if self._slab is not None:
            for hand in alive:
                if hand.is_ready and not hand.has_exited():
                    self._post(hand, CLOSE)
            self._wake(alive)
            until = monotonic() + 2.0
            for hand in alive:
                while hand.is_ready and not hand.has_exited() and monotonic() < until:
                    select.select([hand.pidfd], [], [], max(0.0, until - monotonic()))
        for hand in alive:
            hand.kill()
        for hand in alive:
            select.select([hand.pidfd], [], [], 2.0)
            hand.let_go()
        self._epoll.close()
        SHARED.give_back()
        if self._slab is not None:
            self._slab.close()
        self._finalizer.detach()

    # Orders -------------------------------------------------------------------------------

    def reset(self, mask: NDArray[np.bool_], seeds: Sequence[int | None], options: dict) -> None:
        """Begin a new episode in the rows of the mask."""
        slab = self._ready_slab()
        self._take_turn()
        slab.chosen[:] = mask
        for row in np.flatnonzero(mask).tolist():
            seed = seeds[row]
            if seed is None and self._seeds[row] is None:
                seed = fresh_seed()
            slab.has_seed[row] = seed is not None
            if seed is not None:
                slab.seeds[row], self._seeds[row] = seed, seed
        for hand in self._hands:
            self._make_ready(hand)
            if options:
                assert hand.channel is not None
                say(hand.channel, options, self._deadline())
            self._post(hand, RESET, chunk=int(bool(options)))
        self._finish(self._hands)

    def step(self, actions: NDArray) -> None:
        """Take one action in every row."""
        slab = self._ready_slab()
        self._take_turn()
        slab.actions[:, 0] = actions
        self._order_all(STEP, 1)

    def chunk(self, actions: NDArray) -> None:
        """Take K actions in every row."""
        slab = self._ready_slab()
        length = actions.shape[1]
        if length > self.config.max_chunk:
            raise BadConfig(
                f"A chunk of {length} actions; the slab has room for {self.config.max_chunk}. "
                f"Make the environments with max_chunk={length}."
            )
        self._take_turn()
        slab.actions[:, :length] = actions
        slab.num_steps[:] = 0
        self._order_all(CHUNK, length)

    def send(self, actions: NDArray, rows: NDArray[np.intp]) -> None:
        """Have some rows take one action, without waiting; their workers must be theirs alone."""
        slab = self._ready_slab()
        hands = self._hands_of(rows)
        slab.actions[rows, 0] = actions
        for hand in hands:
            self._make_ready(hand)
            self._post(hand, STEP, hand.turn ^ 1)
            hand.is_sent = True
        self._wake(hands)

    def receive(self, min_rows: int) -> tuple[NDArray[np.intp], list[tuple[slice, StepArrays]]]:
        """Wait until at least `min_rows` sent rows are done; return them with their arrays."""
        sent = [hand for hand in self._hands if hand.is_sent]
        if min_rows > (on_way := sum(hand.num_rows for hand in sent)):
            raise BadConfig(f"recv() wants {min_rows} rows, but only {on_way} were sent.")
        failures = self._await(sent, self._deadline(), enough=min_rows)
        parts = []
        for hand in sent:
            if hand in failures:
                self._bury(hand, failures[hand])
            elif self._words[hand.done_at] == hand.order:
                self._collect(hand)
            else:
                continue
            hand.is_sent = False
            parts.append((hand.rows, self.turns[hand.turn]))
        rows = [np.arange(part.start, part.stop) for part, _ in parts]
        return np.concatenate(rows), parts

    def _hands_of(self, rows: NDArray[np.intp]) -> list[Hand]:
        """Return the workers of rows, which must be sent whole: a worker steps its rows as one."""
        wanted = set(rows.tolist())
        hands = []
        for hand in self._hands:
            mine = set(range(hand.rows.start, hand.rows.stop))
            if not mine & wanted:
                continue
            if not mine <= wanted:
                raise BadConfig(
                    f"Rows {_names(hand.rows)} share a worker and are sent together; "
                    f"rows {sorted(mine - wanted)} are missing."
                )
            if hand.is_sent:
                raise BadConfig(f"Rows {_names(hand.rows)} are on their way already: recv() first.")
            hands.append(hand)
        return hands

    def _take_turn(self) -> None:
        """Bring all rows onto the same set of arrays, then turn to the other one."""
        if on_way := [hand for hand in self._hands if hand.is_sent]:
            names = ", ".join(_names(hand.rows) for hand in on_way)
            raise BadConfig(f"Rows {names} are on their way: recv() them before step or reset.")
        for hand in self._hands:
            if hand.turn != self.turn:
                self.turns[self.turn].copy_rows(self.turns[hand.turn], hand.rows)
        self.turn ^= 1

    def _order_all(self, opcode: int, length: int) -> None:
        ordered = []
        for hand in self._hands:
            if not hand.is_ready and not self._is_back(hand):
                self._pause(hand)
                continue
            self._post(hand, opcode, chunk=length)
            ordered.append(hand)
        self._finish(ordered)

    def each_row(self, what: str, name: str, args: tuple, kwargs: dict, values: Any = None) -> list:
        """Get, set or call an attribute in every row."""
        self._ready_slab()
        answers: list[tuple[bool, Any]] = []
        for hand in self._hands:
            self._make_ready(hand)
            assert hand.channel is not None
            part = None if values is None else list(values[hand.rows])
            say(hand.channel, (what, name, args, kwargs, part), self._deadline())
            self._post(hand, TOUCH)
        failures = self._await(self._hands, self._deadline())
        for hand in self._hands:
            if hand in failures:
                raise WorkerDied(self._obituary(hand, failures[hand]))
            assert hand.channel is not None
            answers.append(hear(hand.channel, self._deadline()))
        for is_good, value in answers:
            if not is_good:
                raise value
        return [value for _, part in answers for value in part]

    def num_steps(self) -> NDArray[np.int64]:
        """Steps that each row took in the last chunk."""
        assert self._slab is not None
        return self._slab.num_steps.copy()

    def finals(self) -> list[Final]:
        """Ends of the episodes that the last call reset at once."""
        assert self._slab is not None
        slab, found = self._slab, list(self._finals)
        known = {final.row for final in found}
        for row in np.flatnonzero(slab.final_rows).tolist():
            if row not in known:
                found.append(Final(row, slab.finals.take(row), slab.final_extras.take(row)))
        return sorted(found, key=lambda final: final.row)

    def remarks(self) -> dict[int, dict[str, Any]]:
        """Return and forget what is to be said of single rows."""
        remarks, self._remarks = self._remarks, {}
        return remarks

    def extra_stats(self) -> dict[str, Any]:
        """Tell of every worker: how long it simulates, how often it was replaced."""
        return {
            "per_worker": [
                {"exec_ms": hand.exec_times.summary_ms(), "restarts": hand.restarts}
                for hand in self._hands
            ],
            "restarts": sum(hand.restarts for hand in self._hands),
        }

    # Waiting ------------------------------------------------------------------------------

    def _deadline(self) -> float:
        return monotonic() + self.config.step_timeout_s

    def _ready_slab(self) -> Slab:
        assert self._slab is not None
        self._outwait_interrupted()
        self._remarks.clear()
        self._finals.clear()
        return self._slab

    def _outwait_interrupted(self) -> None:
        """Let orders come to their end that a KeyboardInterrupt left behind."""
        left = [
            h
            for h in self._hands
            if h.is_ready and not h.is_sent and self._words[h.done_at] != h.order
        ]
        if left:
            for hand, cause in self._await(left, self._deadline()).items():
                self._bury(hand, cause)
            for hand in left:
                if hand.is_ready:
                    self._collect(hand)
            self._remarks.clear()

    def _post(self, hand: Hand, opcode: int, turn: int | None = None, chunk: int = 0) -> None:
        words, base = self._words, hand.base
        if opcode not in (TOUCH, CLOSE):
            hand.turn = self.turn if turn is None else turn
        words[base + layout.OPCODE] = opcode
        words[base + layout.TURN] = hand.turn
        words[base + layout.CHUNK] = chunk
        hand.order += 1
        words[hand.order_at] = hand.order

    def _wake(self, hands: list[Hand]) -> None:
        """Ring at the workers that went to sleep before their order came."""
        fence()
        for hand in hands:
            if self._words[hand.sleeps_at] and hand.wake is not None:
                ring(hand.wake)

    def _finish(self, hands: list[Hand]) -> None:
        """Wait for orders, collect what came of them, replace who did not answer."""
        failures = self._await(hands, self._deadline())
        longest = 0
        for hand in hands:
            if hand not in failures:
                longest = max(longest, self._collect(hand))
        self.last_exec_s = longest * 1e-9
        self.exec_times.add(self.last_exec_s)
        for hand, cause in failures.items():
            self._bury(hand, cause)

    def _collect(self, hand: Hand) -> int:
        words, base = self._words, hand.base
        took = words[base + layout.EXEC_NS]
        hand.exec_times.add(took * 1e-9)
        if words[base + layout.TALKS]:
            assert hand.channel is not None
            remarks = hear(hand.channel, self._deadline())
            if isinstance(remarks, dict):
                for row, remark in remarks.items():
                    self._remarks[hand.rows.start + row] = remark
        return took

    def _await(
        self, hands: list[Hand], deadline: float, enough: int | None = None
    ) -> dict[Hand, str]:
        """Wake the hands, wait until all (or `enough` rows) have answered.

        Returns:
            Who never will, and why.
        """
        self._wake(hands)
        words, yield_core = self._words, os.sched_yield
        may_miss = 0 if enough is None else sum(h.num_rows for h in hands) - enough
        pending = [h for h in hands if words[h.done_at] != h.order]
        until = perf_counter_ns() + SPIN_NS
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
        """Take late wake-ups and old deaths out of the way, or they would wake us for ever."""
        for hand in self._hands:
            if hand in pending or not hand.is_alive:
                continue
            if hand.wake is not None and hand.wake.fileno() in events:
                drain(hand.wake)
            if hand.pidfd in events:
                self._epoll.unregister(hand.pidfd)

    # Death --------------------------------------------------------------------------------

    def _bury(self, hand: Hand, how: str) -> None:
        """Report the rows of a lost worker as truncated, and start its replacement.

        Raises:
            WorkerDied: It has died too often.
        """
        assert self._slab is not None
        reason = self._obituary(hand, how)
        self._show_last_good(hand)
        self._give_up(hand)
        if hand.count_death(self.config.restart_window_s) > self.config.max_restarts:
            raise WorkerDied(
                f"{reason}\nIt was replaced {self.config.max_restarts} times within "
                f"{self.config.restart_window_s:g} s: the fault is not a passing one."
            )
        hand.incarnation += 1
        hand.restarts += 1
        self._launch(hand)
        note = {"worker_restarted": reason}
        for row in range(hand.rows.start, hand.rows.stop):
            self._remarks[row] = dict(note)
        if self.mode is AutoresetMode.SAME_STEP:
            self._restart_at_once(hand)

    def _show_last_good(self, hand: Hand) -> None:
        """Fill the rows with the last complete step, as an episode cut off there."""
        now, before = self.turns[hand.turn], self.turns[hand.turn ^ 1]
        now.obs.copy_from(before.obs, hand.rows)
        now.extras.copy_from(before.extras, hand.rows)
        now.reward[hand.rows] = 0.0
        now.terminated[hand.rows], now.truncated[hand.rows] = False, True
        assert self._slab is not None
        self._slab.num_steps[hand.rows] = 0
        self._slab.final_rows[hand.rows] = False

    def _restart_at_once(self, hand: Hand) -> None:
        """Reset a replacement within the step that lost its rows, as SAME_STEP promises."""
        assert self._slab is not None
        slab, now = self._slab, self.turns[hand.turn]
        ended = range(hand.rows.start, hand.rows.stop)
        finals = [Final(row, now.obs.take(row), now.extras.take(row)) for row in ended]
        remarks = {row: {"final_info": self._remarks.pop(row)} for row in ended}
        slab.chosen[hand.rows] = True
        for row, seed in zip(ended, self._reborn_seeds(hand), strict=True):
            slab.has_seed[row], slab.seeds[row] = True, seed
        self._make_ready(hand)
        self._post(hand, RESET, hand.turn)
        self._finish([hand])
        now.truncated[hand.rows] = True
        self._finals += finals
        self._remarks |= remarks

    def _give_up(self, hand: Hand) -> None:
        """Make sure that a worker is gone, and drop its descriptors."""
        hand.kill()
        for fd in (hand.wake.fileno() if hand.wake else -1, hand.pidfd):
            with contextlib.suppress(OSError, ValueError):
                self._epoll.unregister(fd)
        select.select([hand.pidfd], [], [], 2.0)
        hand.let_go()

    def _make_ready(self, hand: Hand) -> None:
        """Wait for a replacement; one that fails at once is replaced again, within the budget."""
        while not hand.is_ready:
            try:
                self._hear_start(hand, "ready", monotonic() + self.config.start_timeout_s)
            except WorkerDied as error:
                self._give_up(hand)
                if hand.count_death(self.config.restart_window_s) > self.config.max_restarts:
                    raise
                del error
                self._launch(hand)
                continue
            hand.is_ready = True

    def _is_back(self, hand: Hand) -> bool:
        """Tell whether a replacement can take orders; in block mode, wait until it can."""
        assert hand.channel is not None
        if self.config.on_restart == "block" or select.select([hand.channel], [], [], 0)[0]:
            self._make_ready(hand)
        return hand.is_ready

    def _pause(self, hand: Hand) -> None:
        """Repeat the rows of a worker that is not back yet."""
        hand.turn = self.turn
        self._show_last_good(hand)
        self.turns[self.turn].truncated[hand.rows] = False
        for row in range(hand.rows.start, hand.rows.stop):
            self._remarks[row] = {"worker_restarting": True}

    def _reborn_seeds(self, hand: Hand) -> tuple[int, ...]:
        seeds = self._seeds[hand.rows]
        return tuple(reborn_seed(s if s is not None else 0, hand.incarnation) for s in seeds)

    def _obituary(self, hand: Hand, how: str) -> str:
        """Tell everything that is known of a death: rows, cause, seeds, last action, stack."""
        assert self._slab is not None
        if how == "hung":
            hand.kill(STACK_SIGNAL)
            until = perf_counter() + 0.06
            while not hand.last_words() and perf_counter() < until:
                sleep(0.005)
            cause = f"gave no answer in {self.config.step_timeout_s:g} s and was killed"
        else:
            cause = self._cause(hand)
        row = hand.rows.start
        action = np.array2string(self._slab.actions[row, 0], precision=4, separator=", ")
        told = self._told_error(hand)
        stack = hand.last_words()
        parts = [
            f"Worker {hand.index} (rows {_names(hand.rows)}, process {hand.pid}) {cause}; "
            f"seeds {self._seeds[hand.rows]}, last action of row {row}: {action}"
        ]
        parts += [text for text in (told, stack) if text]
        return "\n".join(parts)

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


def _split(num_envs: int, workers: int) -> list[slice]:
    """Spread rows evenly over workers, in order."""
    edges = [num_envs * k // workers for k in range(workers + 1)]
    return [slice(a, b) for a, b in pairwise(edges)]


def _rows_in(hands: list[Hand]) -> int:
    return sum(hand.num_rows for hand in hands)


def _names(rows: slice) -> str:
    return str(rows.start) if rows.stop - rows.start == 1 else f"{rows.start}-{rows.stop - 1}"


def _abandon(hands: list[Hand]) -> None:
    """End the workers of an engine that nobody closed."""
    for hand in hands:
        hand.kill()
        hand.let_go()
    SHARED.give_back()
