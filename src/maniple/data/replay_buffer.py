"""Remember the last transitions of many environments, every frame once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.faults import waiting_after
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions
from maniple.data.frame_stack import join_pictures

Arrays = dict[str, NDArray]
MARKS = ("reward", "terminated", "ended", "usable", "age")


class ReplayBuffer:
    """A ring of vector steps. Slot t holds what every row saw, did and got at step t.

    What a row saw next is in slot t + 1: no frame is stored twice. That is also true at the end
    of an episode, because Gymnasium's next-step autoreset shows the last observation before the
    first one of the next episode; the step between the two is marked as not usable.
    """

    def __init__(
        self,
        layout: Layout,
        action: ArraySpec,
        num_envs: int,
        capacity: int,
        seed: int = 0,
        stack: int = 1,
        folder: str | Path | None = None,
    ) -> None:
        """Make room for `capacity` transitions.

        Args:
            layout: What an observation is made of.
            action: What an action is.
            num_envs: Rows of the vector environment that fills it.
            capacity: Transitions to keep, over all rows.
            seed: Of the draws.
            stack: Pictures are returned with the ones before them, this many in all.
            folder: Keep the frames in files there instead of in memory.
        """
        self.num_envs = num_envs
        self.steps = -(-capacity // num_envs) + 1
        if self.steps < 3 or stack < 1:
            raise BadConfig(
                f"A replay of {capacity} transitions with stack {stack} is too small for "
                f"{num_envs} environments; give it at least {2 * num_envs}."
            )
        self.layout, self.stack = layout, stack
        self.total = 0
        """Vector steps that were ever added."""
        self.begun = False
        self._rng = np.random.default_rng(seed)
        self._pictures = {n for n, s in layout.items() if s.image is not None}
        specs: dict[str, tuple] = {f"obs.{n}": (s.shape, s.dtype) for n, s in layout.items()}
        specs["action"] = (action.shape, action.dtype)
        specs |= {"reward": ((), np.dtype(np.float32)), "age": ((), np.dtype(np.int32))}
        specs |= {n: ((), np.dtype(np.bool_)) for n in ("terminated", "ended", "usable")}
        self.arrays = {
            name: _room(folder, name, (self.steps, num_envs, *shape), dtype)
            for name, (shape, dtype) in specs.items()
        }
        self._obs = {name: self.arrays[f"obs.{name}"] for name in layout}
        self._waiting = np.zeros(num_envs, np.bool_)
        """Rows whose episode is over: their next step only resets them."""

    def __len__(self) -> int:
        """Transitions that can be drawn, counting the few unusable ones."""
        return min(self.total, self.steps - 1) * self.num_envs

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def head(self) -> int:
        """Slot of the newest observation, which has no action yet."""
        return self.total % self.steps

    def begin(self, obs: Mapping[str, NDArray]) -> None:
        """Note the first observation after a reset of all rows."""
        self._see(self.head, obs)
        self.arrays["age"][self.head] = 0
        if self.total:
            # What came before this reset does not lead here.
            last = (self.total - 1) % self.steps
            self.arrays["usable"][last] = False
            self.arrays["ended"][last] = True
        self._waiting = np.zeros(self.num_envs, np.bool_)
        self.begun = True

    def add(
        self,
        action: NDArray,
        reward: NDArray,
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        next_obs: Mapping[str, NDArray],
        lost: NDArray[np.bool_] | None = None,
    ) -> None:
        """Note what one vector step did.

        Args:
            lost: Rows whose simulator was replaced: what they show does not follow from what
                they did.
        """
        assert self.begun, "begin() comes first"
        arrays, slot, after = self.arrays, self.head, (self.total + 1) % self.steps
        fresh = self._waiting if lost is None else self._waiting | lost
        arrays["action"][slot] = action
        arrays["reward"][slot] = reward
        arrays["terminated"][slot] = terminated
        # A row that had ended was reset by this step and ignored its action.
        arrays["usable"][slot] = ~fresh
        ended = arrays["ended"][slot] = terminated | truncated
        self._waiting = waiting_after(ended, self._waiting, lost)
        arrays["age"][after] = np.where(fresh, 0, arrays["age"][slot] + 1)
        self.total += 1
        self._see(after, next_obs)

    def sample(self, count: int, discount: float = 0.99, n_step: int = 1) -> Transitions:
        """Draw transitions uniformly, each over up to `n_step` steps."""
        slots, rows = self._draw(count)
        reward, weight, last = self._follow(slots, rows, discount, n_step)
        return Transitions(
            self._look(slots, rows),
            self.arrays["action"][slots, rows],
            reward,
            weight,
            self._look(last, rows),
        )

    def _draw(self, count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        usable = self.arrays["usable"]
        filled = min(self.total, self.steps - 1)
        if filled == 0:
            raise BadConfig("The replay is empty: collect steps before sampling.")
        slots, rows = np.empty(count, np.intp), np.empty(count, np.intp)
        have, tries = 0, 0
        while have < count:
            back = self._rng.integers(1, filled + 1, count - have)
            row = self._rng.integers(0, self.num_envs, count - have)
            slot = (self.total - back) % self.steps
            good = usable[slot, row]
            found = int(good.sum())
            slots[have : have + found], rows[have : have + found] = slot[good], row[good]
            have, tries = have + found, tries + 1
            if tries > 1000:
                raise BadConfig("The replay holds no usable transition: every one was cut.")
        return slots, rows

    def _follow(
        self, slots: NDArray, rows: NDArray, discount: float, n_step: int
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Sum rewards until the episode ends, the ring ends, or n steps are over."""
        arrays = self.arrays
        reward = arrays["reward"][slots, rows].copy()
        weight = np.full(len(slots), discount, np.float32)
        last = slots.copy()
        going = ~arrays["ended"][slots, rows]
        for _ in range(n_step - 1):
            after = (last + 1) % self.steps
            going &= (after != self.head) & arrays["usable"][after, rows]
            last = np.where(going, after, last)
            reward += np.where(going, weight * arrays["reward"][last, rows], 0.0).astype(np.float32)
            weight = np.where(going, weight * np.float32(discount), weight)
            going &= ~arrays["ended"][last, rows]
        weight = np.where(arrays["terminated"][last, rows], np.float32(0.0), weight)
        return reward, weight, (last + 1) % self.steps

    def _look(self, slots: NDArray, rows: NDArray) -> Arrays:
        return {name: self._frames(name, slots, rows) for name in self._obs}

    def _frames(self, name: str, slots: NDArray, rows: NDArray) -> NDArray:
        array = self._obs[name]
        if self.stack == 1 or name not in self._pictures:
            return array[slots, rows]
        age = self.arrays["age"][slots, rows]
        # Not before the episode's first frame, nor before the oldest that is still there.
        oldest = np.minimum(age, (slots - self.head - 1) % self.steps)
        back = [np.minimum(k, oldest) for k in reversed(range(self.stack))]
        return join_pictures([array[(slots - b) % self.steps, rows] for b in back])

    def _see(self, slot: int, obs: Mapping[str, NDArray]) -> None:
        for name, array in self._obs.items():
            array[slot] = obs[name]

    def newest(self) -> Arrays:
        """Copy the observation that has no action yet."""
        return {name: array[self.head].copy() for name, array in self._obs.items()}

    def extend(
        self,
        obs: Mapping[str, NDArray],
        action: NDArray,
        reward: NDArray,
        terminated: NDArray[np.bool_],
        ended: NDArray[np.bool_],
        usable: NDArray[np.bool_],
    ) -> None:
        """Append T steps of one row that were played elsewhere; only for a ring of one row.

        They need not follow from what is here. Observations have T + 1 rows.
        """
        assert self.num_envs == 1
        count = len(action)
        if count + 1 >= self.steps:
            raise BadConfig(f"{count} steps do not fit into a replay of {self.steps - 1}.")
        if self.begun:
            # The newest observation so far leads nowhere.
            self.arrays["usable"][self.head], self.arrays["ended"][self.head] = False, True
            self.total += 1
        slots = (self.total + np.arange(count + 1)) % self.steps
        for name, array in self._obs.items():
            array[slots, 0] = obs[name]
        for name, values in (
            ("action", action), ("reward", reward), ("terminated", terminated),
            ("ended", ended), ("usable", usable),
        ):  # fmt: skip
            self.arrays[name][slots[:-1], 0] = values
        age = 0
        for t, slot in enumerate(slots):
            self.arrays["age"][slot, 0] = age
            # An unusable step is a reset: an episode begins after it.
            age = age + 1 if t < count and usable[t] else 0
        self.total += count
        self.begun = True

    def segment(self, since: int) -> Arrays:
        """Copy the vector steps from number `since` on, and the newest observation."""
        since = max(since, self.total - self.steps + 1, 0)
        slots = np.arange(since, self.total + 1) % self.steps
        return {name: array[slots] for name, array in self.arrays.items()}

    def restore(self, segment: Mapping[str, NDArray], since: int, total: int) -> None:
        """Put a segment back where it was."""
        slots = np.arange(max(since, 0), total + 1) % self.steps
        for name, array in self.arrays.items():
            if name not in segment or segment[name].shape[1:] != array.shape[1:]:
                raise BadConfig(
                    f"The stored replay does not fit this run in {name!r}. Resume with the "
                    "num_envs, cameras and image_size that it was begun with."
                )
            array[slots] = segment[name]
        self.total, self.begun = total, True
        self._waiting = self.arrays["ended"][(total - 1) % self.steps].copy()

    def oldest(self) -> int:
        """Number of the oldest vector step that is still here."""
        return max(0, self.total - self.steps + 1)

    def rng_state(self) -> dict[str, Any]:
        """Return the state of the draws, as plain numbers."""
        return dict(self._rng.bit_generator.state)

    def set_rng_state(self, state: dict[str, Any]) -> None:
        """Go on with the draws from there."""
        self._rng.bit_generator.state = state


def _room(folder: str | Path | None, name: str, shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
    if folder is None or name in MARKS:
        # Untouched pages of zeros cost no memory until they are written.
        return np.zeros(shape, dtype)
    Path(folder).mkdir(parents=True, exist_ok=True)
    return np.lib.format.open_memmap(Path(folder) / f"{name}.npy", "w+", dtype, shape)
