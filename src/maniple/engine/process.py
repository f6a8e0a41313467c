"""Step environments in worker processes that share one slab, and replace those that fail."""

from __future__ import annotations

import pickle
import select
import weakref
from collections.abc import Iterable, Sequence
from time import monotonic, perf_counter
from typing import Any

import cloudpickle
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, WorkerDied
from maniple.core.group import Contract, Recipe
from maniple.core.seeds import fresh_seed
from maniple.core.step import StepArrays
from maniple.engine import absent_rows
from maniple.engine.autoreset import Final
from maniple.engine.channel import ChannelTimeout, pack
from maniple.engine.config import ProcessConfig
from maniple.engine.questions import ask
from maniple.engine.replacements import Replacements
from maniple.engine.resets_beside import begin_resets, end_resets
from maniple.engine.slab import Slab, SlabShape
from maniple.engine.stats import Times
from maniple.engine.worker import CHUNK, RESET, STEP
from maniple.engine.worker_handle import WorkerHandle
from maniple.engine.worker_pool import WorkerPool, how_it_failed, unpack_error


class ProcessEngine:
    """Gives orders to a worker pool, and truncates the rows of a worker that fails.

    Any call may be interrupted (Ctrl-C) at any moment. The next one waits for what is still being
    done, drops what came of it, and goes on: every row then shows what it did last, with the infos
    of that step. Rows that had not got their order yet are a step behind the others.
    """

    def __init__(
        self, recipe: Recipe, num_envs: int, mode: AutoresetMode, config: ProcessConfig
    ) -> None:
        if config.workers > num_envs:
            raise BadConfig(
                f"{config.workers} workers for {num_envs} environments; use at most {num_envs}."
            )
        if config.on_reset == "mask" and mode is not AutoresetMode.NEXT_STEP:
            raise BadConfig(
                f"on_reset='mask' lets rows pause until they are reset, which {mode.value} has no "
                "place for: leave it out, or autoreset_mode."
            )
        self.num_envs = num_envs
        self.workers = config.workers
        self.mode = mode
        self.config = config
        self.buffer = 0
        self.exec_times = Times()
        self.last_exec_s = 0.0
        self.paused_rows = 0
        """Rows that took no step in the last one, and did not fail either."""
        self._seeds: list[int | None] = [None] * num_envs
        self._row_infos: dict[int, dict[str, Any]] = {}
        self._finals: list[Final] = []
        self._refusal: Exception | None = None
        """Why a worker did not do what it was asked for."""
        self._pool = WorkerPool(cloudpickle.dumps(recipe), num_envs, mode, config)
        self._handles = self._pool.handles
        self._replacements = Replacements(self._pool, self._seeds)
        # An engine that was never closed ends its workers when it is collected.
        self._finalizer = weakref.finalize(self, self._pool.close)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        pool, deadline = self._pool, monotonic() + self.config.start_timeout_s
        for handle in self._handles:
            pool.launch(handle)
        contracts = [pool.receive_start(handle, "built", deadline) for handle in self._handles]
        self.contract: Contract = contracts[0]
        for handle, contract in zip(self._handles, contracts, strict=True):
            if contract.observation != self.contract.observation:
                raise BadConfig(
                    f"Row {handle.rows.start} has another observation space than row 0: "
                    f"{contract.observation} and {self.contract.observation}."
                )
        shape = SlabShape(self.contract, self.num_envs, self.workers, self.config.max_chunk)
        self._slab = Slab(shape)
        self.buffers: list[StepArrays] = self._slab.buffers
        pool.share(self._slab)
        for handle in self._handles:
            try:
                pool.send_slab(handle, deadline)
            except (EOFError, ChannelTimeout) as error:
                how = "hung" if isinstance(error, ChannelTimeout) else "ended"
                raise WorkerDied(self._replacements.describe(handle, how)) from None
        for handle in self._handles:
            pool.receive_start(handle, "ready", deadline)
            handle.is_ready = True

    def close(self) -> None:
        """Stop the pool; a second call does nothing."""
        self._pool.close()
        if self._pool.slab is not None:
            self._pool.slab.close()
        self._finalizer.detach()

    def reset(self, mask: NDArray[np.bool_], seeds: Sequence[int | None], options: dict) -> None:
        """Begin a new episode in the rows of the mask."""
        # What cannot be pickled leaves everything as it is.
        packed = pack(options) if options else None
        slab = self._begin()
        self._swap_buffers()
        slab.chosen[:] = mask
        for row in np.flatnonzero(mask).tolist():
            seed = seeds[row]
            if seed is None and self._seeds[row] is None and not self.contract.is_foreign:
                seed = fresh_seed()
            slab.has_seed[row] = seed is not None
            if seed is not None:
                slab.seeds[row], self._seeds[row] = seed, seed
        lost = self._try_reset(self._handles, packed)
        # A replacement has nothing to lose: it gets the same order once more.
        if lost and (still := self._try_reset(lost, packed)):
            raise WorkerDied(still[0].owed or "")
        for handle in self._handles:
            if handle.owed is not None:
                for row, info in absent_rows.cut_off_in_reset(slab, handle, mask).items():
                    self._row_infos.setdefault(row, {}).update(info)
        self._raise_refusal()
        # Not before there is an episode: many environments are made only to be looked at.
        self._pool.fill_spares()

    def _try_reset(self, handles: list[WorkerHandle], packed: bytes | None) -> list[WorkerHandle]:
        """Have workers reset the chosen rows; return those that had to be replaced instead."""
        failures: dict[WorkerHandle, str] = {}
        for handle in handles:
            self._replacements.make_ready(handle)
            if packed is None:
                self._post(handle, RESET)
                continue
            try:
                self._pool.post_with_message(handle, RESET, self.buffer, packed, chunk=1)
            except (EOFError, ChannelTimeout) as error:
                failures[handle] = how_it_failed(error)
        awaited = [handle for handle in handles if handle not in failures]
        failures |= self._pool.wait(awaited)
        for handle in awaited:
            if handle not in failures and (how := self._collect(handle)):
                failures[handle] = how
        self._replacements.replace_all(failures)
        return list(failures)

    def step(self, actions: NDArray) -> None:
        """Take one action in every row."""
        slab = self._begin(beside_resets=True)
        self._swap_buffers()
        slab.actions[:, 0] = actions
        self._order_all(STEP, 1)

    def chunk(self, actions: NDArray) -> None:
        """Take K actions in every row."""
        slab = self._begin(beside_resets=True)
        length = actions.shape[1]
        if length > self.config.max_chunk:
            raise BadConfig(
                f"A chunk of {length} actions; the slab has room for {self.config.max_chunk}. "
                f"Make the environments with max_chunk={length}."
            )
        self._swap_buffers()
        slab.actions[:, :length] = actions
        slab.num_steps[:] = 0
        self._order_all(CHUNK, length)

    def send(self, actions: NDArray, rows: NDArray[np.intp]) -> None:
        """Have rows take one action, without waiting; all rows of a worker are sent together."""
        slab = self._begin()
        handles = self._handles_of(rows)
        slab.actions[rows, 0] = actions
        due = self._pool.deadline()
        for handle in handles:
            if handle.owed is not None:
                handle.buffer = handle.good_buffer ^ 1
            else:
                self._replacements.make_ready(handle)
                self._pool.post(handle, STEP, handle.good_buffer ^ 1, due)
            handle.is_sent = True
        self._pool.wake(handles)

    def receive(self, min_rows: int) -> tuple[NDArray[np.intp], list[tuple[slice, StepArrays]]]:
        """Wait until at least `min_rows` sent rows are done; return them with their arrays."""
        self._pool.check_owner()
        sent = [handle for handle in self._handles if handle.is_sent]
        if min_rows > (on_way := sum(handle.num_rows for handle in sent)):
            raise BadConfig(f"recv() wants {min_rows} rows, but only {on_way} were sent.")
        awaited = [handle for handle in sent if handle.owed is None]
        there = on_way - sum(handle.num_rows for handle in awaited)
        failures = self._pool.wait(awaited, enough=max(0, min_rows - there))
        for handle in awaited:
            if handle.channel is None or not handle.channel.is_whole:
                failures[handle] = "interrupted"
            elif handle not in failures and self._pool.has_answered(handle):
                failures |= {handle: how} if (how := self._collect(handle)) else {}
        self._replacements.replace_all(failures)
        self._raise_refusal()
        parts = []
        for handle in sent:
            if handle.owed is not None:
                self._report_lost(handle)
            elif not self._pool.has_answered(handle):
                continue
            handle.is_sent = False
            parts.append((handle.rows, self.buffers[handle.buffer]))
        rows = [np.arange(part.start, part.stop) for part, _ in parts]
        return np.concatenate(rows), parts

    def _handles_of(self, rows: NDArray[np.intp]) -> list[WorkerHandle]:
        """Return the workers of rows, which must be sent whole: a worker steps its rows as one."""
        wanted = set(rows.tolist())
        handles = []
        for handle in self._handles:
            mine = set(handle.row_numbers)
            if not mine & wanted:
                continue
            if not mine <= wanted:
                raise BadConfig(
                    f"Rows {handle.row_names} share a worker and are sent together; "
                    f"rows {sorted(mine - wanted)} are missing."
                )
            if handle.is_sent:
                raise BadConfig(f"Rows {handle.row_names} are on their way already: recv() first.")
            handles.append(handle)
        return handles

    def _swap_buffers(self) -> None:
        """Bring all rows onto the same set of arrays, then swap to the other one."""
        self._check_none_sent(self._handles)
        for handle in self._handles:
            if handle.good_buffer != self.buffer:
                self.buffers[self.buffer].copy_rows(self.buffers[handle.good_buffer], handle.rows)
                handle.buffer = handle.good_buffer = self.buffer
        self.buffer ^= 1

    def _check_none_sent(self, handles: Iterable[WorkerHandle]) -> None:
        if on_way := [handle for handle in handles if handle.is_sent]:
            names = ", ".join(handle.row_names for handle in on_way)
            raise BadConfig(f"Rows {names} are on their way: recv() them before anything else.")

    def _order_all(self, opcode: int, length: int) -> None:
        masks_resets = self.config.on_reset == "mask"
        waited_s = 0.0
        if masks_resets:
            start = perf_counter()
            self._replacements.replace_all(end_resets(self._pool, self._handles))
            waited_s = perf_counter() - start
        ordered, lost, paused = [], [], []
        for handle in self._handles:
            if handle.owed is not None:
                lost.append(handle)
            elif handle.is_resetting:
                paused.append(handle)
            elif handle.is_ready:
                ordered.append(handle)
            elif not self._is_back(handle):
                paused.append(handle)
            elif masks_resets:
                begin_resets(self._pool, [handle])
                paused.append(handle)
            else:
                ordered.append(handle)
        due = self._pool.deadline()
        for handle in ordered:
            self._pool.post(handle, opcode, self.buffer, due, length)
        for handle in paused:
            self.paused_rows += handle.num_rows
            self._row_infos |= absent_rows.pause(self._slab, handle, self.buffer)
        self._finish(ordered, waited_s)
        for handle in lost:
            handle.buffer = self.buffer
            self._report_lost(handle)
        if self._refusal is not None:
            self._raise_refusal()
        if masks_resets:
            ended = np.logical_or(*self.buffers[self.buffer].ends)
            begin_resets(self._pool, [h for h in ordered if h.is_ready and ended[h.rows].any()])

    def each_row(self, what: str, name: str, args: tuple, kwargs: dict, values: Any = None) -> list:
        """Get, set or call an attribute in every row."""
        questions = {}
        for handle in self._handles:
            part = None if values is None else list(values[handle.rows])
            questions[handle] = ("touch", what, name, args, kwargs, part)
        return [value for part in self._ask(questions) for value in part]

    def get_state(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Copy the states of rows."""
        mine = {handle: [r for r in rows if handle.has_row(r)] for handle in self._handles}
        mine = {handle: asked for handle, asked in mine.items() if asked}
        answers = self._ask(
            {h: ("get_state", [r - h.rows.start for r in asked]) for h, asked in mine.items()}
        )
        found: dict[int, dict[str, Any]] = {}
        for asked, states in zip(mine.values(), answers, strict=True):
            found |= zip(asked, states, strict=True)
        return [found[row] for row in rows]

    def set_state(self, states: Sequence[dict[str, Any]], rows: Sequence[int]) -> None:
        """Bring rows back to states that `get_state` gave."""
        given = dict(zip(rows, states, strict=True))
        questions = {}
        for handle in self._handles:
            mine = {row - handle.rows.start: given[row] for row in rows if handle.has_row(row)}
            if mine:
                questions[handle] = ("set_state", list(mine.values()), list(mine))
        self._ask(questions)

    def _ask(self, questions: dict[WorkerHandle, tuple]) -> list[Any]:
        # All are packed before one is sent: what cannot be pickled leaves no worker half asked.
        packed = {handle: pack(question) for handle, question in questions.items()}
        self._begin()
        self._check_none_sent(questions)
        return ask(self._pool, self._replacements, packed)

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

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the infos of single rows."""
        row_infos, self._row_infos = self._row_infos, {}
        return row_infos

    def extra_stats(self) -> dict[str, Any]:
        """Return how long every worker simulates, and how often it was replaced."""
        return {
            "per_worker": [
                {"exec_ms": handle.exec_times.summary_ms(), "restarts": handle.restarts}
                for handle in self._handles
            ],
            "restarts": sum(handle.restarts for handle in self._handles),
        }

    def _begin(self, beside_resets: bool = False) -> Slab:
        """Forget what the last call reported; make good what an interrupt left undone."""
        pool = self._pool
        pool.check_owner()
        for handle in self._handles:
            is_wanted = handle.is_sent or (beside_resets and handle.is_resetting)
            if not (is_wanted or pool.is_settled(handle)):
                self._settle(beside_resets)
                break
        self.paused_rows = 0
        self._row_infos.clear()
        self._finals.clear()
        self._refusal = None
        return self._slab

    def _settle(self, beside_resets: bool) -> None:
        """Wait for orders that nobody waits for any more, and drop what comes of them."""
        pool = self._pool
        left = [h for h in self._handles if not (h.is_sent or pool.is_settled(h))]
        left = [h for h in left if not (beside_resets and h.is_resetting)]
        for handle in left:
            pool.resume(handle)
        failures = {h: "interrupted" for h in left if h.channel is None or not h.channel.is_whole}
        awaited = [handle for handle in left if handle not in failures]
        failures |= pool.wait(awaited)
        for handle in awaited:
            if handle not in failures:
                try:
                    pool.collect(handle)
                    handle.is_resetting = False
                except (EOFError, ChannelTimeout) as error:
                    failures[handle] = how_it_failed(error)
        self._replacements.replace_all(failures)

    def _post(self, handle: WorkerHandle, opcode: int) -> None:
        self._pool.post(handle, opcode, self.buffer, self._pool.deadline())

    def _finish(self, handles: list[WorkerHandle], waited_s: float = 0.0) -> None:
        """Wait for orders, collect what came of them, replace who did not answer."""
        pool = self._pool
        failures = pool.wait(handles)
        longest = 0
        for handle in handles:
            if handle not in failures:
                if how := self._collect(handle):
                    failures[handle] = how
                else:
                    longest = max(longest, pool.exec_ns(handle))
        self.last_exec_s = waited_s + longest * 1e-9
        if handles:
            self.exec_times.add(self.last_exec_s)
        if failures:
            self._replacements.replace_all(failures)
            for handle in failures:
                self._report_lost(handle)

    def _collect(self, handle: WorkerHandle) -> str | None:
        """Read a worker's answer; return how it failed, if it did before all of it had come."""
        try:
            kind, value = self._pool.collect(handle)
        except (EOFError, ChannelTimeout) as error:
            return how_it_failed(error)
        if kind == "refused":
            self._refusal = self._refusal or unpack_error(value)
        elif kind == "infos":
            for row, data in value:
                self._row_infos[handle.rows.start + row] = _info(data)
        return None

    def _raise_refusal(self) -> None:
        if refusal := self._refusal:
            self._refusal = None
            raise refusal

    def _report_lost(self, handle: WorkerHandle) -> None:
        """Report the rows of a worker that was replaced as truncated."""
        self._row_infos |= absent_rows.cut_off(self._slab, handle)
        if self.mode is AutoresetMode.SAME_STEP:
            self._restart_at_once(handle)

    def _restart_at_once(self, handle: WorkerHandle) -> None:
        """Reset a replacement within the step that lost its rows, as SAME_STEP promises."""
        slab, now = self._slab, self.buffers[handle.buffer]
        ended = handle.row_numbers
        finals = [Final(row, now.obs.take(row), now.extras.take(row)) for row in ended]
        row_infos = {row: {"final_info": self._row_infos.pop(row)} for row in ended}
        slab.chosen[handle.rows] = True
        for row, seed in zip(ended, self._replacements.seeds(handle), strict=True):
            slab.has_seed[row] = seed is not None
            slab.seeds[row] = seed or 0
        self._replacements.make_ready(handle)
        self._pool.post(handle, RESET, handle.buffer, self._pool.deadline())
        self._finish([handle])
        now.truncated[handle.rows] = True
        self._finals += finals
        for row, info in row_infos.items():
            self._row_infos.setdefault(row, {}).update(info)

    def _is_back(self, handle: WorkerHandle) -> bool:
        """Return whether a replacement can take orders; in block mode, wait until it can."""
        assert handle.channel is not None
        if self.config.on_restart == "block" or select.select([handle.channel], [], [], 0)[0]:
            self._replacements.make_ready(handle)
        return handle.is_ready


def _info(data: bytes) -> dict[str, Any]:
    """Return the info of a row; as text, if it cannot be unpickled here."""
    try:
        return pickle.loads(data)  # noqa: S301  (from our own worker)
    except Exception as error:
        return {"info_error": f"The info cannot be unpickled here: {type(error).__name__}: {error}"}
