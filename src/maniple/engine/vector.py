"""Gymnasium's vector environment over any engine."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from maniple.core.action import ActionCheck
from maniple.core.errors import BadConfig, ClosedError, ResetNeeded
from maniple.core.group import Contract
from maniple.core.info import add_row_infos, batch_info, row_info
from maniple.core.options import check_options
from maniple.core.seeds import row_seeds
from maniple.core.space import flattener, layout_of, nester, row_nester
from maniple.core.step import StepArrays
from maniple.engine.autoreset import Final
from maniple.engine.row_attribute import counters_of
from maniple.engine.stats import Times

STATE = "sim_state"
"""The attribute that get_attr and set_attr take for `get_state` and `set_state`."""

StepResult = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class Engine(Protocol):
    """Where the rows live and how they are stepped."""

    contract: Contract
    num_envs: int
    workers: int
    buffers: list[StepArrays]
    buffer: int
    exec_times: Times
    last_exec_s: float
    paused_rows: int

    def reset(self, mask: NDArray[np.bool_], seeds: Sequence, options: dict) -> None: ...
    def step(self, actions: NDArray) -> None: ...
    def chunk(self, actions: NDArray) -> None: ...
    def num_steps(self) -> NDArray[np.int64]: ...
    def finals(self) -> list[Final]: ...
    def row_infos(self) -> dict[int, dict[str, Any]]: ...
    def extra_stats(self) -> dict[str, Any]: ...
    def each_row(
        self, what: str, name: str, args: tuple, kwargs: dict, values: Any = None
    ) -> list: ...
    def get_state(self, rows: Sequence[int]) -> list[dict[str, Any]]: ...
    def set_state(self, states: Sequence[dict[str, Any]], rows: Sequence[int]) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class SendingEngine(Protocol):
    """An engine that steps some rows while others wait."""

    def send(self, actions: NDArray, rows: NDArray[np.intp]) -> None: ...
    def receive(self, min_rows: int) -> tuple[NDArray[np.intp], list[tuple[slice, StepArrays]]]: ...


class VectorEnv(gymnasium.vector.VectorEnv):
    """Many environments stepped as one.

    Beyond Gymnasium's contract: `step_chunk`, `send` and `recv`, `get_state` and `set_state`,
    `stats`, and `copy_obs=False`, with which observations are read-only views that stay valid
    for one more step.
    """

    def __init__(
        self, engine: Engine, name: str, mode: AutoresetMode, copy_obs: bool = True
    ) -> None:
        contract = engine.contract
        self.num_envs = engine.num_envs
        self.single_observation_space = contract.observation_space
        self.single_action_space = contract.action_space
        self.observation_space = batch_space(contract.observation_space, self.num_envs)
        self.action_space = batch_space(contract.action_space, self.num_envs)
        self.metadata = {**contract.metadata, "autoreset_mode": mode}
        self.autoreset_mode = mode
        self.render_mode = contract.render_mode
        self.layout = contract.observation
        # From the space, not the check: a pose out of reach passes, and is reported as invalid.
        (self.action_spec,) = layout_of(contract.action_space).values()
        self.named = flattener(contract.observation_space)
        """Takes an observation apart into the arrays of `layout`."""
        self.engine_name = name
        self.copy_obs = copy_obs
        self._engine = engine
        self._sender = engine if isinstance(engine, SendingEngine) else None
        self._check = ActionCheck(contract)
        self._lead = (self.num_envs,)
        self._nest = nester(contract.observation_space)
        self._nest_row = row_nester(contract.observation_space)
        self._frozen = [self._nest(buffer.obs.frozen()) for buffer in engine.buffers]
        self._everyone = np.ones(self.num_envs, np.bool_)
        self._everyone.flags.writeable = False
        self._has_extras = bool(contract.extras)
        self._same_step = mode is AutoresetMode.SAME_STEP
        self._is_reset = False
        self._is_manual = mode is AutoresetMode.DISABLED
        self._waits = np.zeros(self.num_envs, np.bool_)
        """Rows that the user has to reset before they can be stepped."""
        self._env_steps = 0
        self._transport_times = Times()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes, in all rows or in those of `options["reset_mask"]`.

        Args:
            seed: One number (row i gets seed + i), one per row, or None to go on with the next
                episode of each row's stream.
            options: `reset_mask`, a boolean array of the rows to reset; `variation`, the number
                of the variation that they play, in tasks that have several.
        """
        self._check_open()
        seeds = row_seeds(seed, self.num_envs)
        options = dict(options or {})
        mask = self._mask(options.pop("reset_mask", None))
        if not self._is_reset and not mask.all():
            raise ResetNeeded("The first reset() must be of all rows: leave reset_mask out.")
        check_options(self._engine.contract, options)
        was_reset, self._is_reset = self._is_reset, False
        try:
            self._engine.reset(mask, seeds, options)
        except Exception:
            # A reset that is refused half-way leaves rows that cannot be stepped.
            raise
        except BaseException:
            # After an interrupt every row is in its old episode or in a new one.
            self._is_reset = was_reset
            raise
        self._is_reset = True
        # A row that could not be reset waits for its next one.
        self._waits[mask] = self._arrays.truncated[mask]
        info = batch_info(self._arrays.extras, mask)
        add_row_infos(info, self._engine.row_infos(), self.num_envs)
        return self._seen(self._arrays), info

    def step(self, actions: ArrayLike) -> StepResult:
        """Take one action in every row."""
        start = perf_counter()
        self._check_ready(self._everyone)
        self._engine.step(self._check(actions, self._lead))
        self._env_steps += self.num_envs - self._engine.paused_rows
        result = self._result()
        self._transport_times.add(perf_counter() - start - self._engine.last_exec_s)
        return result

    def step_chunk(self, actions: ArrayLike) -> StepResult:
        """Take K actions in every row, (num_envs, K, ...), in one round trip.

        A row that ends stops there. Returned are the last observation, the sum of the rewards,
        the flags, and `info["num_steps"]`. A row that waited for its autoreset gets it and
        ignores the chunk: its num_steps is 0.
        """
        start = perf_counter()
        self._check_ready(self._everyone)
        array = np.asarray(actions)
        if array.ndim < 2 or array.shape[1] == 0:
            raise BadConfig(
                f"step_chunk() got shape {array.shape}; it takes (num_envs, K, ...) with K >= 1."
            )
        self._engine.chunk(self._check(array, (self.num_envs, array.shape[1])))
        num_steps = self._engine.num_steps()
        self._env_steps += int(num_steps.sum())
        obs, reward, terminated, truncated, info = self._result()
        info["num_steps"], info["_num_steps"] = num_steps, self._everyone
        self._transport_times.add(perf_counter() - start - self._engine.last_exec_s)
        return obs, reward, terminated, truncated, info

    def send(self, actions: ArrayLike, rows: ArrayLike | None = None) -> None:
        """Have rows (None: all) take one action each, and return at once; see `recv`.

        Rows that share a worker are sent together. Only the process engine can do this.
        """
        self._check_open()
        engine = self._sending_engine()
        chosen = self._rows(rows, "send")
        self._check_ready(chosen)
        engine.send(self._check(actions, (len(chosen),)), chosen)

    def recv(self, min_rows: int = 1) -> tuple[NDArray[np.intp], StepResult]:
        """Wait until at least `min_rows` of the sent rows are done.

        Returns:
            Their numbers, and what `step` would return for them, in that order. With
            copy_obs=False the observations are copied all the same: they come from rows that
            need not lie together.
        """
        self._check_ready(slice(0))
        rows, parts = self._sending_engine().receive(min_rows)
        row_infos = self._engine.row_infos()
        place = {row: k for k, row in enumerate(rows.tolist())}
        self._env_steps += len(rows)
        pick = lambda get: np.concatenate([get(arrays)[part] for part, arrays in parts])  # noqa: E731
        names = parts[0][1].obs.arrays
        obs = {name: pick(lambda a, n=name: a.obs.arrays[n]) for name in names}
        info, said = {}, {}
        for part, arrays in parts:
            for row in range(part.start, part.stop):
                extras = row_info(arrays.extras.take(row)) if self._has_extras else {}
                said[place[row]] = extras | row_infos.get(row, {})
        add_row_infos(info, said, len(rows))
        if self._same_step:
            finals = [final for final in self._engine.finals() if final.row in place]
            if finals:
                self._add_finals(info, [f._replace(row=place[f.row]) for f in finals], len(rows))
        result = (
            self._nest(obs),
            pick(lambda a: a.reward),
            pick(lambda a: a.terminated),
            pick(lambda a: a.truncated),
            info,
        )
        if self._is_manual:
            self._waits[rows] = result[2] | result[3]
        return rows, result

    def _sending_engine(self) -> SendingEngine:
        if self._sender is None:
            raise BadConfig(
                f"The {self.engine_name} engine steps all rows at once; send() and recv() need "
                "engine='process'."
            )
        return self._sender

    def stats(self) -> dict[str, Any]:
        """Percentiles of the time spent simulating and around it, and what went wrong."""
        return {
            "engine": self.engine_name,
            "num_envs": self.num_envs,
            "workers": self._engine.workers,
            "env_steps": self._env_steps,
            "exec_ms": self._engine.exec_times.summary_ms(),
            "transport_ms": self._transport_times.summary_ms(),
            **({"renderer": self.metadata["renderer"]} if "renderer" in self.metadata else {}),
            **self._engine.extra_stats(),
        }

    @property
    def last_exec_s(self) -> float:
        """How long the slowest worker simulated in the last step."""
        return self._engine.last_exec_s

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute."""
        self._check_open()
        if name == STATE:
            return self.get_state()
        return tuple(self._engine.each_row("call", name, args, kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of every environment."""
        self._check_open()
        if name == STATE:
            return self.get_state()
        return tuple(self._engine.each_row("get", name, (), {}))

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute: one value for all, or a list or tuple with one per row."""
        self._check_open()
        if not isinstance(values, (list, tuple)):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise BadConfig(
                f"set_attr() got {len(values)} values for {self.num_envs} environments."
            )
        if name == STATE:
            self.set_state(values)
        else:
            self._engine.each_row("set", name, (), {}, values)

    def get_state(self, rows: ArrayLike | None = None) -> tuple[dict[str, Any], ...]:
        """Copy everything that rows (None: all) need in order to go on from this moment.

        Raises:
            BadConfig: The environments cannot save their state.
        """
        self._check_open()
        return tuple(self._engine.get_state(self._rows(rows, "get_state").tolist()))

    def set_state(
        self, states: Sequence[dict[str, Any]] | dict[str, Any], rows: ArrayLike | None = None
    ) -> None:
        """Bring rows (None: all) back to states that `get_state` gave, of any row or engine.

        The next step goes on from there. A row that had ended waits for its reset again.

        Args:
            states: One per row, in the order of `rows`, or one for all of them.
            rows: Their numbers.
        """
        self._check_open()
        chosen = self._rows(rows, "set_state")
        given = [states] * len(chosen) if isinstance(states, dict) else list(states)
        if len(given) != len(chosen):
            raise BadConfig(f"set_state() got {len(given)} states for {len(chosen)} rows.")
        self._engine.set_state(given, chosen.tolist())
        if self._is_manual:
            self._waits[chosen] = [bool(counters_of(s).get("has_ended")) for s in given]

    def _rows(self, rows: ArrayLike | None, verb: str) -> NDArray[np.intp]:
        chosen = np.arange(self.num_envs) if rows is None else np.asarray(rows, np.intp)
        if chosen.ndim != 1 or len(chosen) == 0 or len(np.unique(chosen)) != len(chosen):
            raise BadConfig(f"{verb}() got rows {rows}; it takes a list of different row numbers.")
        if chosen.min() < 0 or chosen.max() >= self.num_envs:
            raise BadConfig(f"{verb}() got rows {rows}; there are {self.num_envs}.")
        return chosen

    def render(self) -> tuple[Any, ...]:
        """Return a picture of every environment."""
        return self.call("render")

    @property
    def np_random_seed(self) -> tuple[int, ...]:
        """The seed of each row."""
        return self.get_attr("np_random_seed")

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:
        """A copy of each row's generator: what is drawn from it does not change the row's."""
        return self.get_attr("np_random")

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of the engine; `close` calls this once."""
        self._engine.close()

    @property
    def _arrays(self) -> StepArrays:
        return self._engine.buffers[self._engine.buffer]

    def _result(self) -> StepResult:
        arrays = self._arrays
        info = batch_info(arrays.extras, self._everyone) if self._has_extras else {}
        if row_infos := self._engine.row_infos():
            add_row_infos(info, row_infos, self.num_envs)
        if self._same_step and (finals := self._engine.finals()):
            self._add_finals(info, finals, self.num_envs)
        terminated, truncated = arrays.terminated.copy(), arrays.truncated.copy()
        if self._is_manual:
            self._waits = terminated | truncated
        return self._seen(arrays), arrays.reward.copy(), terminated, truncated, info

    def _add_finals(self, info: dict[str, Any], finals: list[Final], rows: int) -> None:
        final_obs = np.full(rows, None, object)
        mask = np.zeros(rows, np.bool_)
        final_info: dict[str, Any] = info.setdefault("final_info", {})
        for final in finals:
            final_obs[final.row] = self._nest_row(final.obs)
            mask[final.row] = True
        extras = {final.row: row_info(final.extras) for final in finals}
        add_row_infos(final_info, extras, rows)
        info["final_obs"], info["_final_obs"] = final_obs, mask
        info["_final_info"] = mask.copy()

    def _seen(self, arrays: StepArrays) -> Any:
        if self.copy_obs:
            return self._nest(arrays.obs.copy())
        return self._frozen[self._engine.buffer]

    def _mask(self, given: Any) -> NDArray[np.bool_]:
        if given is None:
            return self._everyone
        if not isinstance(given, np.ndarray) or given.dtype != np.bool_:
            raise TypeError(
                f"reset_mask must be a boolean numpy array, not {type(given).__name__}"
                f"{f' of {given.dtype}' if isinstance(given, np.ndarray) else ''}."
            )
        if given.shape != (self.num_envs,):
            raise BadConfig(f"reset_mask has shape {given.shape}; it must have ({self.num_envs},).")
        if not given.any():
            raise BadConfig("reset_mask has no True in it: there is nothing to reset.")
        return given

    def _check_open(self) -> None:
        if self.closed:
            raise ClosedError("This vector environment is closed; make a new one.")

    def _check_ready(self, rows: Any) -> None:
        """Before anything moves: every one of the rows must be in the middle of an episode."""
        if self.closed or not self._is_reset:
            self._check_open()
            raise ResetNeeded("step() was called before reset(); call envs.reset(seed=...) first.")
        if self._is_manual and self._waits[rows].any():
            ended = np.flatnonzero(self._waits).tolist()
            raise ResetNeeded(
                f"Rows {ended} have ended and autoreset is disabled. "
                "Reset them first: envs.reset(options={'reset_mask': terminated | truncated})."
            )
