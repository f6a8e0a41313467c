"""Host anybody's Gymnasium environments: a loop, strict about what they return."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from maniple.core.block import SMALL
from maniple.core.errors import BadConfig, unknown_option
from maniple.core.faults import cut_off, fault_text, repeat_and_cut_off
from maniple.core.group import Contract, Recipe
from maniple.core.pack import Packer
from maniple.core.space import flattener, layout_of, nester
from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import StepArrays

INF = float("inf")


@dataclass(frozen=True)
class HostedRecipe(Recipe):
    """A function that makes an environment, or a Gymnasium id."""

    make: Callable[[], gymnasium.Env] | str
    options: tuple[tuple[str, Any], ...] = ()
    clip_actions: bool = False

    preload = ("mujoco", __name__)

    @classmethod
    def of(cls, make: Callable[..., gymnasium.Env] | str, options: dict[str, Any]) -> HostedRecipe:
        """Check the options of a function before a worker starts with them; make its recipe."""
        given = dict(options)
        clips = bool(given.pop("clip_actions", False))
        if callable(make):
            _check_takes(make, given)
        return cls(make, tuple(given.items()), clips)

    def build(self) -> gymnasium.Env:
        """Make one environment."""
        if callable(self.make):
            return self.make(**dict(self.options))
        return gymnasium.make(self.make, **dict(self.options))

    def contract(self) -> Contract:
        """Describe the environment by making one and closing it."""
        env = self.build()
        try:
            return contract_of(env, self.clip_actions)
        finally:
            env.close()

    def group(self, num_envs: int, threads: int, rank: int = 0, first_row: int = 0) -> HostedGroup:
        """Build rows `first_row` and following."""
        return HostedGroup(self, num_envs, first_row)


def _check_takes(make: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse options that a function has no parameter for."""
    try:
        parameters = inspect.signature(make, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):  # compiled functions may not say
        return
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for name in options:
        if name not in named:
            who = f"{getattr(make, '__name__', repr(make))} takes"
            raise unknown_option(name, [*named, "clip_actions"], who)


def contract_of(env: gymnasium.Env, clip_actions: bool) -> Contract:
    """Read an environment's spaces."""
    action = layout_of(env.action_space)
    if len(action) != 1:
        raise BadConfig(
            f"The action space {env.action_space} has {len(action)} parts; only spaces of one "
            "array can be hosted. Wrap the environment so that it takes a Box."
        )
    return Contract(
        observation=layout_of(env.observation_space),
        action=Layout({"action": next(iter(action.values()))}),
        extras=Layout({}),
        observation_space=env.observation_space,
        action_space=env.action_space,
        metadata=dict(env.metadata),
        render_mode=env.render_mode,
        clip_actions=clip_actions,
        reset_options=None,
        is_foreign=True,
    )


class HostedGroup:
    """Environments of one kind, stepped one after the other.

    An environment with an attribute `observation_arrays` is lent the slab's own arrays before
    every step: pictures that it writes there, and returns, are never copied.

    What they return is held to what their spaces promise. An environment that raises or breaks
    its promise ends its episode with `env_error`, and is made anew; the others go on.
    """

    def __init__(self, recipe: HostedRecipe, num_envs: int, first_row: int) -> None:
        self._recipe = recipe
        self.first_row = first_row
        self.envs: list[gymnasium.Env | None] = [None] * num_envs
        for row in range(num_envs):
            try:
                self.envs[row] = recipe.build()
            except Exception as error:
                error.add_note(f"while making the environment of row {first_row + row}")
                raise
        env = self.envs[0]
        assert env is not None
        self.contract = contract_of(env, recipe.clip_actions)
        self._names = list(self.contract.observation)
        self._flatten = flattener(self.contract.observation_space)
        self._to_action = _action_maker(self.contract.action_space)
        # An environment that has this attribute writes its pictures straight into the slab.
        self._lends = hasattr(env.unwrapped, "observation_arrays")
        self._lent: list[dict[str, NDArray]] = []
        self._lent_of: dict[int, list[dict[str, NDArray]]] = {}
        self._packers: dict[StepArrays, Packer] = {}
        self._out: StepArrays | None = None
        self._previous: StepArrays | None = None
        self._row_infos: dict[int, dict[str, Any]] = {}
        self._seeds: list[int | None] = [None] * num_envs
        self._steps = [0] * num_envs
        self.faulted: set[int] = set()
        """Rows that have failed since, or in, their last reset."""
        self._is_carried = False
        self._seen: dict[int, Any] = {}
        """What rows returned since the last report."""
        self._last: NDArray | None = None
        """The last action of every row."""

    limit = None
    """Their own wrappers truncate them."""

    def bind(self, arrays: StepArrays) -> None:
        """Report into these arrays from now on."""
        if self._out is not None and self._out is not arrays:
            self._previous = self._out
        self._out = arrays
        self._is_carried = False
        if self._lends:
            self._lent = self._lent_rows(arrays)

    def reset(
        self, rows: NDArray[np.intp], seeds: Sequence[int | None], options: dict | None = None
    ) -> None:
        """Begin a new episode in `rows`."""
        for k, row in enumerate(np.asarray(rows).tolist()):
            if seeds[k] is not None:
                self._seeds[row] = seeds[k]
            self._steps[row] = 0
            self.faulted.discard(row)
            try:
                env = self._env(row)
                if self._lends:
                    env.unwrapped.observation_arrays = self._lent[row]
                self._seen[row], info = env.reset(seed=seeds[k], options=options or None)
                if info:
                    self._add_info(row, info)
            except Exception:
                self._fail(row, "reset() failed", None)

    def step(self, actions: NDArray, active: NDArray[np.bool_] | None = None) -> None:
        """Step the active rows (None: all)."""
        out, envs, seen, to_action = self._out, self.envs, self._seen, self._to_action
        assert out is not None
        reward, terminated, truncated = out.reward, out.terminated, out.truncated
        # A copy: an environment may keep its action, but the slab's is overwritten.
        self._last = actions = actions.copy()
        rows = range(len(envs)) if active is None else np.flatnonzero(active).tolist()
        for row in rows:
            self._steps[row] += 1
            action = actions[row]
            try:
                env = envs[row] or self._env(row)
                if self._lends:
                    env.unwrapped.observation_arrays = self._lent[row]
                obs, gain, ends, cut, info = env.step(to_action(action) if to_action else action)
                if not -INF < gain < INF:  # type: ignore[operator]
                    raise ValueError(f"the reward is {gain}")
                seen[row], reward[row], terminated[row], truncated[row] = obs, gain, ends, cut
                if info:
                    self._add_info(row, info)
            except Exception:
                self._fail(row, "step() failed", action)

    def chunk(
        self, actions: NDArray, running: NDArray[np.bool_], num_steps: NDArray[np.int64]
    ) -> None:
        """Let running rows take their actions (rows, K, ...) until they end, row after row."""
        out, to_action = self._out, self._to_action
        assert out is not None
        actions = actions.copy()
        self._last = last = actions[:, -1]
        for row in np.flatnonzero(running).tolist():
            total, taken, action = 0.0, 0, last[row]
            try:
                env = self.envs[row] or self._env(row)
                if self._lends:
                    env.unwrapped.observation_arrays = self._lent[row]
                step = env.step
                for action in actions[row]:
                    taken += 1
                    self._steps[row] += 1
                    obs, gain, ends, cut, info = step(to_action(action) if to_action else action)
                    if not -INF < gain < INF:  # type: ignore[operator]
                        raise ValueError(f"the reward is {gain}")
                    total += float(gain)
                    if info:
                        self._add_info(row, info)
                    if ends or cut:
                        break
                self._seen[row], out.terminated[row], out.truncated[row] = obs, ends, cut
            except Exception:
                self._fail(row, "step() failed", action)
            out.reward[row], num_steps[row], last[row] = total, taken, action

    def report(self, final: bool = True) -> None:
        """Write the observations of rows that moved.

        Between the steps of a chunk this is left out: what an environment returned last is its
        own until it moves again.
        """
        out, previous = self._out, self._previous
        assert out is not None
        if not final:
            return
        seen = self._seen
        if not self._is_carried and previous is not None and len(seen) < len(self.envs):
            self._carry_over(out, previous)
        self._is_carried = True
        packer = self._packer_of(out)
        for row, obs in list(seen.items()):
            try:
                if not self._write(packer, row, obs):
                    self._fail(row, self._nonfinite(out, row), self._action_of(row))
            except Exception:
                self._fail(row, "the observation cannot be used", self._action_of(row))
        seen.clear()

    def row_infos(self) -> dict[int, dict[str, Any]]:
        """Return and forget the infos of the environments."""
        row_infos, self._row_infos = self._row_infos, {}
        return row_infos

    def _add_info(self, row: int, info: Any) -> None:
        if not isinstance(info, dict):
            raise TypeError(f"the info is {info!r}, which is no dict")
        self._row_infos.setdefault(row, {}).update(info)

    def row(self, row: int) -> Any:
        """Return an environment itself."""
        return self._env(row)

    def close(self) -> None:
        """Close every environment; one that fails does not keep the others open."""
        for row, env in enumerate(self.envs):
            if env is not None:
                self.envs[row] = None
                try:
                    env.close()
                except Exception:
                    traceback.print_exc()

    def _env(self, row: int) -> gymnasium.Env:
        env = self.envs[row]
        if env is None:
            env = self.envs[row] = self._recipe.build()
        return env

    def _lent_rows(self, arrays: StepArrays) -> list[dict[str, NDArray]]:
        """Views of every row, the same objects at each turn: that is how they are recognised."""
        found = self._lent_of.get(id(arrays))
        if found is None:
            found = self._lent_of[id(arrays)] = [
                {name: array[row] for name, array in arrays.obs.arrays.items()}
                for row in range(len(self.envs))
            ]
        return found

    def _carry_over(self, out: StepArrays, previous: StepArrays) -> None:
        """Repeat the observations of rows that did not move."""
        still = np.ones(len(self.envs), np.bool_)
        still[list(self._seen)] = False
        out.obs.copy_from(previous.obs, still)

    def _packer_of(self, arrays: StepArrays) -> Packer:
        found = self._packers.get(arrays)
        if found is None:
            found = Packer(arrays.obs, arrays.obs.layout, is_strict=True)
            self._packers[arrays] = found
        return found

    def _write(self, packer: Packer, row: int, obs: Any) -> bool:
        """Write a row's observation; return whether it is finite.

        Raises:
            TypeError, ValueError: It is not what its space says.
        """
        parts = self._flatten(obs)
        values = [parts[name] for name in self._names]
        is_finite = packer.write_row(values, row)
        if is_finite is None:
            # Plain numbers and lists; a picture beside them is not looked at number by number.
            for k, (name, spec) in enumerate(self.contract.observation.items()):
                if not spec.fits(values[k]):
                    values[k] = _converted(name, spec, values[k])
            is_finite = packer.write_row(values, row)
            assert is_finite is not None
        return is_finite

    def _nonfinite(self, out: StepArrays, row: int) -> str:
        """Say which observation of a row is not finite; a depth picture may be infinite."""
        for name, spec in self.contract.observation.items():
            is_number = spec.dtype.kind == "f" and spec.nbytes <= SMALL
            if is_number and not np.isfinite(out.obs.arrays[name][row]).all():
                return f"the observation {name!r} is not finite"
        raise AssertionError("every observation is finite")

    def _action_of(self, row: int) -> Any:
        return None if self._last is None else self._last[row]

    def _fail(self, row: int, what: str, action: Any) -> None:
        """End a row's episode with its traceback, and have its environment made anew."""
        out = self._out
        assert out is not None
        text = fault_text(self.first_row + row, what, self._seeds[row], self._steps[row], action)
        trace = traceback.format_exc().strip() if sys.exc_info()[0] else ""
        self._row_infos[row] = {"env_error": f"{text}\n{trace}"}
        self.faulted.add(row)
        self._seen.pop(row, None)
        if self._previous is not None:
            repeat_and_cut_off(out, self._previous, row)
        else:
            cut_off(out, row)
        broken, self.envs[row] = self.envs[row], None
        try:
            if broken is not None:
                broken.close()
            self.envs[row] = self._recipe.build()
        except Exception:
            self._row_infos[row]["env_error"] += f"\nand then:\n{traceback.format_exc().strip()}"


def _converted(name: str, spec: ArraySpec, value: Any) -> NDArray:
    """Make an array of plain numbers and lists; an array of another kind is a broken promise."""
    if isinstance(value, np.ndarray) and value.dtype != spec.dtype:
        raise TypeError(
            f"the observation {name!r} has dtype {value.dtype}; its space says {spec.dtype}"
        )
    array = np.asarray(value)
    if array.dtype.kind in "OSU":
        raise TypeError(f"the observation {name!r} is {value!r}, which is no number")
    cast = array.astype(spec.dtype)
    if not np.array_equal(cast, array, equal_nan=array.dtype.kind == "f"):
        raise TypeError(f"the observation {name!r} does not fit into {spec.dtype}")
    if cast.shape != spec.shape:
        raise ValueError(
            f"the observation {name!r} has shape {cast.shape}; its space says {spec.shape}"
        )
    return cast


def _action_maker(space: gymnasium.Space) -> Callable[[NDArray], Any] | None:
    """Return what turns one row of the action array into what the environment expects."""
    if isinstance(space, gymnasium.spaces.Discrete):
        return int
    if isinstance(space, (gymnasium.spaces.Dict, gymnasium.spaces.Tuple)):
        name = next(iter(layout_of(space)))
        build = nester(space)
        return lambda action: build({name: action})
    return None
