"""Remember whole episodes, and draw stretches of them in the order in which they were played."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.episode import Episode

MARKS = {"reward": np.float32, "success": np.bool_, "age": np.int32, "left": np.int32,
         "source": np.int8, "priority": np.float32}  # fmt: skip


class Windows(NamedTuple):
    """Stretches of L actions, each after `history` - 1 earlier frames; the first axis is the batch.

    Frames before an episode began repeat its first one; actions before it are zero.
    """

    obs: dict[str, NDArray]
    """(B, history + L, ...): frame `history - 1` is where the stretch begins."""
    action: NDArray[np.float32]
    """(B, history - 1 + L, ...): the last L are those of the stretch."""
    reward: NDArray[np.float32]
    """(B, L)."""
    success: NDArray[np.bool_]
    """(B, L): whether the task was solved after each action."""
    age: NDArray[np.int32]
    """(B, L): steps since the episode began."""
    at: NDArray[np.int64]
    """(B,): number of the first frame, by which `prioritise` finds it again."""


class SequenceBuffer:
    """A ring of frames in which the frames of an episode lie one after another.

    The oldest frames are written over first. An episode of T actions has T + 1 frames; the last
    one has no action.
    """

    def __init__(self, layout: Layout, action: ArraySpec, capacity: int, seed: int = 0) -> None:
        """Make room for `capacity` frames.

        Args:
            layout: The arrays of an observation that are kept.
            action: What an action is.
            seed: Of the draws.
        """
        if capacity < 2:
            raise BadConfig(f"A sequence buffer of {capacity} frames is too small; give it 2.")
        self.layout, self.capacity = layout, capacity
        self.total = 0
        """Frames that were ever added."""
        self._rng = np.random.default_rng(seed)
        self._obs = {name: np.zeros((capacity, *s.shape), s.dtype) for name, s in layout.items()}
        self._marks: dict[str, NDArray] = {
            name: np.zeros(capacity, kind) for name, kind in MARKS.items()
        }
        self._action = np.zeros((capacity, *action.shape), np.float32)
        self.arrays = {f"obs.{n}": a for n, a in self._obs.items()}
        self.arrays |= {"action": self._action, **self._marks}
        self._starts: dict[tuple, NDArray[np.int64]] = {}

    def __len__(self) -> int:
        """Frames that are here."""
        return min(self.total, self.capacity)

    def add(
        self, episode: Episode, source: int = 0, solved: NDArray[np.bool_] | None = None
    ) -> None:
        """Append an episode.

        Args:
            source: A number by which `sample` can choose, such as who played it.
            solved: (T + 1,), frames that show the solved task; None: the last one of a success.
        """
        frames = len(episode) + 1
        if frames > self.capacity:
            raise BadConfig(f"An episode of {frames} frames does not fit into {self.capacity}.")
        slots = (self.total + np.arange(frames)) % self.capacity
        for name, array in self._obs.items():
            array[slots] = episode.obs[name]
        self._action[slots[:-1]], self._action[slots[-1]] = episode.action, 0.0
        marks = self._marks
        marks["reward"][slots] = np.append(episode.reward, np.float32(0.0))
        marks["success"][slots] = _last(episode) if solved is None else solved
        marks["age"][slots] = np.arange(frames)
        marks["left"][slots] = np.arange(frames)[::-1]
        marks["source"][slots], marks["priority"][slots] = source, 1.0
        self.total += frames
        self._starts.clear()

    def sample(
        self,
        count: int,
        length: int,
        history: int = 1,
        source: int | None = None,
        by_priority: bool = False,
        names: Iterable[str] | None = None,
    ) -> Windows:
        """Draw stretches of `length` actions; every place where one fits is equally likely.

        Args:
            history: Frames that are shown up to where a stretch begins, that one included.
            source: Only from episodes that were added with this number; None: from all.
            by_priority: Draw in proportion to what `prioritise` said.
            names: Only these observations; None: all. Numbers alone are drawn at no cost.
        """
        starts = self.starts(length, source)
        if not len(starts):
            raise BadConfig(
                f"No episode here has {length} actions in a row. Play longer episodes "
                "(--steps-per-episode), or learn from shorter stretches."
            )
        if by_priority:
            weights = self._marks["priority"][starts % self.capacity].astype(np.float64)
            ends = np.cumsum(weights)
            drawn = np.searchsorted(ends, self._rng.random(count) * ends[-1])
        else:
            drawn = self._rng.integers(0, len(starts), count)
        return self.windows(starts[np.minimum(drawn, len(starts) - 1)], length, history, names)

    def count(self, length: int, source: int | None = None) -> int:
        """How many different stretches of `length` actions there are."""
        return len(self.starts(length, source))

    def windows(
        self, at: NDArray[np.int64], length: int, history: int, names: Iterable[str] | None = None
    ) -> Windows:
        """Cut out the stretches that begin at the frames with these numbers."""
        age = self._marks["age"][at % self.capacity]
        # Not before the episode's first frame, nor before the oldest that is still here.
        back = np.minimum(age, at - self.oldest())
        offsets = np.arange(1 - history, length + 1)
        frames = (at[:, None] + np.maximum(offsets, -back[:, None])) % self.capacity
        moves = (at[:, None] + offsets[:-1]) % self.capacity
        is_before = offsets[:-1] < -back[:, None]
        action = np.where(_wide(is_before, self._action), 0.0, self._action[moves])
        ahead = (at[:, None] + np.arange(length)) % self.capacity
        return Windows(
            {name: self._obs[name][frames] for name in (self._obs if names is None else names)},
            action.astype(np.float32),
            self._marks["reward"][ahead],
            self._marks["success"][(ahead + 1) % self.capacity],
            self._marks["age"][ahead],
            at,
        )

    def prioritise(self, at: NDArray[np.int64], priority: NDArray) -> None:
        """Say how likely stretches that begin at these frames are to be drawn again."""
        is_here = at >= self.oldest()
        self._marks["priority"][at[is_here] % self.capacity] = priority[is_here]

    def starts(self, length: int, source: int | None = None) -> NDArray[np.int64]:
        """Numbers of the frames from which `length` actions follow."""
        key = (length, source)
        if key not in self._starts:
            numbers = np.arange(self.oldest(), self.total)
            slots = numbers % self.capacity
            fits = self._marks["left"][slots] >= length
            if source is not None:
                fits &= self._marks["source"][slots] == source
            self._starts[key] = numbers[fits]
        return self._starts[key]

    def oldest(self) -> int:
        """Number of the oldest frame that is still here."""
        return max(0, self.total - self.capacity)

    def segment(self, since: int) -> dict[str, NDArray]:
        """Copy the frames from number `since` on."""
        slots = np.arange(max(since, self.oldest()), self.total) % self.capacity
        return {name: array[slots] for name, array in self.arrays.items() if name != "priority"}

    def restore(self, segment: Mapping[str, NDArray], since: int, total: int) -> None:
        """Put a segment back where it was."""
        slots = np.arange(since, total) % self.capacity
        for name, array in self.arrays.items():
            if name == "priority":
                continue
            if name not in segment or segment[name].shape != (len(slots), *array.shape[1:]):
                raise BadConfig(
                    f"The stored episodes do not fit this run in {name!r}. Resume with the "
                    "cameras, image_size and capacity that it was begun with."
                )
            array[slots] = segment[name]
        self.total = total
        self._starts.clear()

    def draw_state(self) -> dict[str, Any]:
        """Return the state of the draws and the priorities, which change after being stored."""
        return {"rng": self._rng.bit_generator.state, "priority": self._marks["priority"].copy()}

    def load_draw_state(self, state: Mapping[str, Any]) -> None:
        """Go on with the draws from there."""
        self._rng.bit_generator.state = state["rng"]
        self._marks["priority"][:] = state["priority"]


def kept(layout: Layout, names: Iterable[str]) -> Layout:
    """Return the part of a layout that a buffer is to keep."""
    return Layout({name: layout[name] for name in names})


def _last(episode: Episode) -> NDArray[np.bool_]:
    """An episode says only whether it was solved: then its last frame shows the solved task."""
    solved = np.zeros(len(episode) + 1, np.bool_)
    solved[-1] = episode.success
    return solved


def _wide(mask: NDArray, like: NDArray) -> NDArray:
    return mask.reshape(*mask.shape, *([1] * (like.ndim - 1)))
