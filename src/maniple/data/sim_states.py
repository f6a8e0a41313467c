"""The simulator's states of one episode, as a few plain arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig

COUNTERS, CONSTANT, CHANGING = "counters.", "constant.", "changing."
"""How arrays are called: a row's counters; model fields that stay in an episode, or do not."""

MOST = 1e10
"""Beyond this MuJoCo takes a state for broken, resets it, and writes a log where it stands."""
STATE_PARTS = ("integration", "counters", "expanded", "randomised")
"""What is kept of a `sim_state`; the rest follows from it."""


@dataclass(frozen=True, eq=False)
class SimStates:
    """T + 1 states, from each of which an environment goes on bit for bit."""

    integration: NDArray[np.float64]
    """(T + 1, n): all that MuJoCo integrates."""

    counters: dict[str, NDArray]
    """(T + 1,) each: seed, episode, steps and the like."""

    constant: dict[str, NDArray] = field(default_factory=dict)
    """Model fields of this row that stay as they are in the episode."""

    changing: dict[str, NDArray] = field(default_factory=dict)
    """Model fields of this row that change, (T + 1, ...)."""

    randomised: tuple[str, ...] = ()
    """Those of the fields that `randomize=True` drew."""

    @classmethod
    def of(cls, states: Sequence[dict[str, Any]]) -> SimStates:
        """Put states together, as `get_state` gave them one by one."""
        first = states[0]
        counters = {
            name: np.array([state["counters"][name] for state in states])
            for name in first["counters"]
        }
        constant, changing = {}, {}
        for name, value in first.get("expanded", {}).items():
            if all(np.array_equal(value, state["expanded"][name]) for state in states[1:]):
                constant[name] = value
            else:
                changing[name] = np.stack([state["expanded"][name] for state in states])
        return cls(
            np.stack([state["integration"] for state in states]),
            counters, constant, changing, tuple(first.get("randomised", ())),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.integration)

    def at(self, step: int) -> dict[str, Any]:
        """Return one state, as `set_state` takes it."""
        expanded = {name: value.copy() for name, value in self.constant.items()}
        expanded |= {name: values[step].copy() for name, values in self.changing.items()}
        return {
            "integration": self.integration[step].copy(),
            "counters": {name: values[step].item() for name, values in self.counters.items()},
            "expanded": expanded,
            "randomised": {name: expanded[name] for name in self.randomised},
        }

    def arrays(self) -> dict[str, NDArray]:
        """Return all of it by name, but for the names in `randomised`."""
        found = {"integration": self.integration}
        for prefix, group in _groups(self).items():
            found |= {prefix + name: array for name, array in group.items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray], randomised: Sequence[str]) -> SimStates:
        """Take the arrays that `arrays` gave.

        Raises:
            BadConfig: They do not fit together.
        """
        if "integration" not in arrays or arrays["integration"].ndim != 2:
            raise BadConfig("there is no array 'integration' of states")
        numbers = arrays["integration"]
        if numbers.dtype != np.float64 or not np.isfinite(numbers).all():
            raise BadConfig("'integration' holds something else than finite float64 numbers")
        if np.abs(numbers).max(initial=0.0) > MOST:
            raise BadConfig(
                f"'integration' holds {np.abs(numbers).max():g}, and MuJoCo's numbers are {MOST:g} "
                "at most"
            )
        states = cls(arrays["integration"], {}, {}, {}, tuple(randomised))
        for prefix, group in _groups(states).items():
            for name in (name for name in arrays if name.startswith(prefix)):
                group[name.removeprefix(prefix)] = arrays[name]
        for name, array in {**states.counters, **states.changing}.items():
            if len(array.shape) < 1 or len(array) != len(states):
                raise BadConfig(f"{name!r} does not have {len(states)} states")
        if any(array.ndim != 1 for array in states.counters.values()):
            raise BadConfig("a counter is more than one number")
        known = states.constant.keys() | states.changing.keys()
        if missing := set(states.randomised) - known:
            raise BadConfig(f"{min(missing)!r} was randomised and is missing")
        return states


def _groups(states: SimStates) -> dict[str, dict[str, NDArray]]:
    return {
        COUNTERS: states.counters, CONSTANT: states.constant, CHANGING: states.changing,
    }  # fmt: skip
