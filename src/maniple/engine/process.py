"""Step environments in worker processes that share one slab, and survive their deaths."""

from __future__ import annotations

import select
import socket
import weakref
from collections.abc import Sequence
from time import monotonic
from typing import Any

import cloudpickle
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, WorkerDied
from maniple.core.group import Contract, Recipe
from maniple.core.seeds import fresh_seed, reborn_seed
from maniple.core.step import StepArrays
from maniple.engine.cohort import Final
from maniple.engine.config import ProcessConfig
from maniple.engine.crew import Crew
from maniple.engine.hand import Hand
from maniple.engine.slab import Slab, SlabShape
from maniple.engine.stats import Times
from maniple.engine.talk import Silence, hear, say
from maniple.engine.worker import CHUNK, RESET, STEP, TOUCH


class ProcessEngine:
    """Orders to a crew, rows of a slab, and what becomes of rows whose worker is lost."""

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
        self._seeds: list[int | None] = [None] * num_envs
        self._remarks: dict[int, dict[str, Any]] = {}
        self._finals: list[Final] = []
        self._refusal: Exception | None = None
        """Why a worker did not do what it was asked for."""
        self._crew = Crew(cloudpickle.dumps(recipe), num_envs, mode, config)
        self._hands = self._crew.hands
        # An engine that nobody closed takes its workers along.
        self._finalizer = weakref.finalize(self, self._crew.close)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        crew, deadline = self._crew, monotonic() + self.config.start_timeout_s
        for hand in self._hands:
            crew.launch(hand)
        contracts = [crew.hear_start(hand, "built", deadline) for hand in self._hands]
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
        crew.share(self._slab)
        for hand in self._hands:
            assert hand.channel is not None
            say(hand.channel, shape, deadline)
            socket.send_fds(hand.channel, [b"s"], [self._slab.fd])
        for hand in self._hands:
            crew.hear_start(hand, "ready", deadline)
            hand.is_ready = True

    def close(self) -> None:
        """Stop the crew; whatever has happened before, and how often it is called."""
        self._crew.close()
        if self._crew.slab is not None:
            self._crew.slab.close()
        self._finalizer.detach()

    def reset(self, mask: NDArray[np.bool_], seeds: Sequence[int | None], options: dict) -> None:
        """Begin a new episode in the rows of the mask."""
        slab = self._tidy()
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
                say(hand.channel, options, self._crew.deadline())
            self._post(hand, RESET, chunk=int(bool(options)))
        self._finish(self._hands)
        if refusal := self._refusal:
            self._refusal = None
            raise refusal

    def step(self, actions: NDArray) -> None:
        """Take one action in every row."""
        slab = self._tidy()
        self._take_turn()
        slab.actions[:, 0] = actions
        self._order_all(STEP, 1)

    def chunk(self, actions: NDArray) -> None:
        """Take K actions in every row."""
        slab = self._tidy()
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
        slab = self._tidy()
        hands = self._hands_of(rows)
        slab.actions[rows, 0] = actions
        for hand in hands:
            self._make_ready(hand)
            self._post(hand, STEP, hand.turn ^ 1)
            hand.is_sent = True
        self._crew.wake(hands)

    def receive(self, min_rows: int) -> tuple[NDArray[np.intp], list[tuple[slice, StepArrays]]]:
        """Wait until at least `min_rows` sent rows are done; return them with their arrays."""
        sent = [hand for hand in self._hands if hand.is_sent]
        if min_rows > (on_way := sum(hand.num_rows for hand in sent)):
            raise BadConfig(f"recv() wants {min_rows} rows, but only {on_way} were sent.")
        failures = self._crew.wait(sent, self._crew.deadline(), enough=min_rows)
        parts = []
        for hand in sent:
            if hand in failures:
                self._bury(hand, failures[hand])
            elif self._crew.has_answered(hand):
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
                    f"Rows {hand.row_names} share a worker and are sent together; "
                    f"rows {sorted(mine - wanted)} are missing."
                )
            if hand.is_sent:
                raise BadConfig(f"Rows {hand.row_names} are on their way already: recv() first.")
            hands.append(hand)
        return hands

    def _take_turn(self) -> None:
        """Bring all rows onto the same set of arrays, then turn to the other one."""
        if on_way := [hand for hand in self._hands if hand.is_sent]:
            names = ", ".join(hand.row_names for hand in on_way)
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
        self._tidy()
        answers: list[tuple[bool, Any]] = []
        for hand in self._hands:
            self._make_ready(hand)
            assert hand.channel is not None
            part = None if values is None else list(values[hand.rows])
            say(hand.channel, (what, name, args, kwargs, part), self._crew.deadline())
            self._crew.post(hand, TOUCH, hand.turn)
        failures = self._crew.wait(self._hands, self._crew.deadline())
        for hand in self._hands:
            if hand in failures:
                raise WorkerDied(self._obituary(hand, failures[hand]))
            assert hand.channel is not None
            answers.append(hear(hand.channel, self._crew.deadline()))
        for is_good, value in answers:
            if not is_good:
                raise value
        return [value for _, part in answers for value in part]

    def num_steps(self) -> NDArray[np.int64]:
        """Steps that each row took in the last chunk."""
        return self._slab.num_steps.copy()

    def finals(self) -> list[Final]:
        """Ends of the episodes that the last call reset at once."""
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

    def _tidy(self) -> Slab:
        """Forget what the last call had to say, and outwait orders that Ctrl-C left behind."""
        left = [
            hand
            for hand in self._hands
            if hand.is_ready and not hand.is_sent and not self._crew.has_answered(hand)
        ]
        if left:
            self._finish(left)
        self._remarks.clear()
        self._finals.clear()
        self._refusal = None
        return self._slab

    def _post(self, hand: Hand, opcode: int, turn: int | None = None, chunk: int = 0) -> None:
        hand.turn = self.turn if turn is None else turn
        self._crew.post(hand, opcode, hand.turn, chunk)

    def _finish(self, hands: list[Hand]) -> None:
        """Wait for orders, collect what came of them, replace who did not answer."""
        failures = self._crew.wait(hands, self._crew.deadline())
        longest = 0
        for hand in hands:
            if hand not in failures:
                longest = max(longest, self._collect(hand))
        self.last_exec_s = longest * 1e-9
        self.exec_times.add(self.last_exec_s)
        for hand, cause in failures.items():
            self._bury(hand, cause)

    def _collect(self, hand: Hand) -> int:
        """Take a worker's answer; one that is lost before it has said all counts as lost."""
        try:
            took, remarks = self._crew.collect(hand)
        except (EOFError, Silence) as error:
            self._bury(hand, "hung" if isinstance(error, Silence) else "ended")
            return 0
        if isinstance(remarks, Exception):
            self._refusal = remarks
        for row, remark in remarks.items() if isinstance(remarks, dict) else ():
            self._remarks[hand.rows.start + row] = remark
        return took

    def _bury(self, hand: Hand, how: str) -> None:
        """Report the rows of a lost worker as truncated, and start its replacement.

        Raises:
            WorkerDied: It has died too often.
        """
        reason = self._obituary(hand, how)
        self._show_last_good(hand)
        self._crew.give_up(hand)
        if hand.count_death(self.config.restart_window_s) > self.config.max_restarts:
            raise WorkerDied(
                f"{reason}\nIt was replaced {self.config.max_restarts} times within "
                f"{self.config.restart_window_s:g} s: the fault is not a passing one."
            )
        hand.incarnation += 1
        hand.restarts += 1
        self._crew.launch(hand, self._reborn_seeds(hand))
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
        self._slab.num_steps[hand.rows] = 0
        self._slab.final_rows[hand.rows] = False

    def _restart_at_once(self, hand: Hand) -> None:
        """Reset a replacement within the step that lost its rows, as SAME_STEP promises."""
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
        for row, remark in remarks.items():
            self._remarks.setdefault(row, {}).update(remark)

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

    def _make_ready(self, hand: Hand) -> None:
        self._crew.make_ready(hand, self._reborn_seeds(hand))

    def _obituary(self, hand: Hand, how: str) -> str:
        """Tell everything that is known of a death: rows, cause, seeds, last action, stack."""
        cause, stack = self._crew.evidence(hand, how)
        row = hand.rows.start
        action = np.array2string(self._slab.actions[row, 0], precision=4, separator=", ")
        text = (
            f"Worker {hand.index} (rows {hand.row_names}, process {hand.pid}) {cause}; "
            f"seeds {self._seeds[hand.rows]}, last action of row {row}: {action}"
        )
        return f"{text}\n{stack}" if stack else text
