"""Demonstrations: episodes of an expert, played now or read from a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ManipleError
from maniple.core.faults import lost_rows
from maniple.core.space import flattener
from maniple.data.episode import Episode
from maniple.data.lerobot import paths
from maniple.data.lerobot.meta import read_origin
from maniple.data.lerobot.read import Dataset
from maniple.data.sim_states import STATE_PARTS
from maniple.data.take import Take

TRIES_PER_EPISODE = 10
"""Episodes that are played for each that is asked for, before giving up."""


class Expert(Protocol):
    """Whoever acts in all rows at once."""

    def act(self, obs: Any) -> NDArray:
        """Return the next action of every row."""
        ...

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over in rows that begin an episode."""


class Tally(NamedTuple):
    """How a collection went."""

    played: int
    """Episodes that were played to their end."""
    solved: int
    """Those in which the task was solved."""


def collect(
    envs: Any,
    expert: Expert,
    episodes: int,
    seed: int = 0,
    only_successes: bool = True,
    on_end: Callable[[Tally], None] | None = None,
    with_states: bool = False,
) -> Iterator[Episode]:
    """Play episodes and yield them in the order of their seeds: seed, seed + 1, ...

    Every episode begins from a seed of its own, so that the same ones come out whatever the
    engine and the number of environments. Those that a fault cut off are left out.

    Args:
        envs: A vector environment, with autoreset NextStep or Disabled.
        expert: Who acts; made for as many rows as there are environments.
        episodes: How many to yield.
        seed: Seed of the first episode.
        only_successes: Leave out episodes in which the task was not solved.
        on_end: Called after every episode that was played.
        with_states: Keep the simulator's states too, from which episodes can be drawn again.

    Raises:
        ManipleError: Ten times as many episodes were played, and too few were solved.
    """
    if episodes < 1:
        raise BadConfig(f"episodes is {episodes}; it must be 1 or larger.")
    if getattr(envs.metadata.get("autoreset_mode"), "value", "") == "SameStep":
        raise BadConfig("collect() needs the final observation: make the envs without SameStep.")
    stage = _Stage(envs, expert, seed, with_states)
    waiting: dict[int, Episode | None] = {}
    yielded = played = solved = 0
    due = seed
    while True:
        for number, episode in stage.step().items():
            played += 1
            solved += episode is not None and episode.success
            waiting[number] = episode
            if on_end:
                on_end(Tally(played, solved))
        while due in waiting:
            episode = waiting.pop(due)
            due += 1
            if episode is not None and (episode.success or not only_successes):
                yield episode
                yielded += 1
                if yielded == episodes:
                    return
        if due - seed >= TRIES_PER_EPISODE * episodes:
            raise ManipleError(
                f"Of {due - seed} episodes only {yielded} were usable; {episodes} were asked for. "
                "Ask for fewer, or keep the failures too."
            )


def load(folder: str | Path, with_pictures: bool = True) -> list[Episode]:
    """Read all episodes of a dataset, or of every dataset right inside a run's folder."""
    return list(read_each(folder, with_pictures))


def read_each(
    folder: str | Path, with_pictures: bool = True, picture_size: tuple[int, int] | None = None
) -> Iterator[Episode]:
    """Read the same episodes one after another: only one has to fit into memory."""
    for root in datasets_in(folder):
        yield from Dataset(root, with_pictures, picture_size)


def check_control(root: Path, control: str | None) -> None:
    """Refuse a dataset whose actions were meant for another control; many do not say."""
    then = read_origin(root).get("control")
    if then and control and then != control:
        raise BadConfig(
            f"The demonstrations in {root} act by {then!r}, and the environments by {control!r}. "
            f"Train with --env.control {then}, or record others with --control {control}."
        )


def datasets_in(folder: str | Path) -> list[Path]:
    """Return the folder if it is a dataset, else the datasets right inside it."""
    root = Path(folder)
    inner = sorted(path.parent.parent for path in root.glob(f"*/{paths.INFO_PATH}"))
    if (root / paths.INFO_PATH).is_file() or not inner:
        return [root]
    return inner


class _Stage:
    """Rows that play, each its episode, and what they have seen so far."""

    def __init__(self, envs: Any, expert: Expert, seed: int, with_states: bool) -> None:
        self._envs = envs
        self._with_states = with_states
        self._expert = expert
        self._flat = flattener(envs.single_observation_space)
        self._next_seed = seed
        self._seeds = np.zeros(envs.num_envs, np.int64)
        self._takes = [Take() for _ in range(envs.num_envs)]
        self._tasks: list[str] = [""] * envs.num_envs
        self._begin(np.ones(envs.num_envs, np.bool_))
        if not any(self._tasks) and _has_sentence(envs):
            # A task that has one sentence only does not repeat it in every reset.
            self._tasks = list(envs.get_attr("sentence"))

    def step(self) -> dict[int, Episode | None]:
        """Act once in every row; return the episodes that ended by seed, None for faulty ones."""
        action = np.asarray(self._expert.act(self._obs))
        kept = action.copy()
        self._obs, reward, terminated, truncated, info = self._envs.step(action)
        success = info.get("success", np.zeros(len(kept), np.bool_))
        seen = self._flat(self._obs)
        for row, take in enumerate(self._takes):
            take.add(seen, row, kept[row], reward[row], bool(success[row]))
        self._keep_states(range(len(self._takes)))
        ended, lost = terminated | truncated, lost_rows(info)
        done: dict[int, Episode | None] = {}
        for row in np.flatnonzero(ended).tolist():
            is_faulty = lost is not None and lost[row]
            done[int(self._seeds[row])] = (
                None
                if is_faulty
                else self._takes[row].episode(
                    bool(terminated[row]),
                    bool(truncated[row]),
                    int(self._seeds[row]),
                    self._tasks[row],
                )
            )
        if ended.any():
            self._begin(ended)
        return done

    def _begin(self, rows: NDArray[np.bool_]) -> None:
        seeds: list[int | None] = [None] * len(rows)
        for row in np.flatnonzero(rows).tolist():
            seeds[row], self._seeds[row] = self._next_seed, self._next_seed
            self._next_seed += 1
        self._obs, info = self._envs.reset(seed=seeds, options={"reset_mask": rows})
        self._expert.reset(rows)
        seen = self._flat(self._obs)
        for row in np.flatnonzero(rows).tolist():
            self._takes[row] = Take()
            self._takes[row].see(seen, row)
            if "sentence" in info and info["_sentence"][row]:
                self._tasks[row] = str(info["sentence"][row])
        self._keep_states(np.flatnonzero(rows).tolist())

    def _keep_states(self, rows: Sequence[int]) -> None:
        if self._with_states:
            for row, state in zip(rows, self._envs.get_state(list(rows)), strict=True):
                kept = {name: state[name] for name in STATE_PARTS if name in state}
                self._takes[row].states.append(kept)


def _has_sentence(envs: Any) -> bool:
    try:
        envs.get_attr("sentence")
    except (AttributeError, ManipleError):
        return False
    return True
