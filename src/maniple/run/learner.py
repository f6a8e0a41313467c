"""What a run drives: something that acts, learns, and can be stored and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

State = dict[str, Any]
"""A nested table of arrays, numbers, texts and lists: all that going on exactly needs."""


class Counters(NamedTuple):
    """How far a learner has come."""

    steps: int
    """What the metrics, the schedule and the checkpoints count: environment steps, or updates
    where there is no environment."""
    updates: int
    replay: int
    """Transitions that can be drawn."""


class Part(Protocol):
    """Something that is stored with the run and has numbers to report."""

    def state(self) -> State: ...
    def load_state(self, state: State) -> None: ...
    def metrics(self) -> dict[str, float]: ...


class Learner(Part, Protocol):
    """Acts and learns. It logs nothing, and owns neither environments nor a folder."""

    replay: Any
    """A `run.segments.Replay`, stored piece by piece; None: nothing to store."""

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray: ...
    def update(self, new_steps: int) -> int:
        """Make the updates that so many new steps bring; return how many were made."""
        ...

    def weights(self) -> dict[str, NDArray]:
        """Return what acting needs."""
        ...

    def counters(self) -> Counters: ...
