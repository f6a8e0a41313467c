"""Show recorded states again, as any environment of their task sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ManipleError
from maniple.core.group import Group
from maniple.core.step import StepArrays
from maniple.data.episode import Episode
from maniple.data.trajectory import Trajectory


class Redrawing:
    """Rows of a group that show recorded episodes side by side."""

    def __init__(self, group: Group, trajectories: Sequence[Trajectory]) -> None:
        """Show one episode in each row."""
        self._group, self._trajectories = group, list(trajectories)
        rows, contract = len(self._trajectories), group.contract
        self._arrays = [StepArrays(contract.observation, contract.extras, rows) for _ in range(2)]
        group.bind(self._arrays[0])
        # States are written over; the reset only makes rows that can be written to.
        group.reset(np.arange(rows), [0] * rows, {})

    def frames(self, every: int = 1) -> Iterator[dict[str, NDArray]]:
        """Yield what all rows see at every k-th step; an episode that is over shows its last one.

        The arrays are written over by the next step.
        """
        for step in range(0, max(len(t.states) for t in self._trajectories), every):
            self._arrays.reverse()
            self._group.bind(self._arrays[0])
            for row, trajectory in enumerate(self._trajectories):
                if step < len(trajectory.states):
                    put_state(self._group.row(row), trajectory.states.at(step))
            self._group.report()
            self._group.row_infos()
            yield self._arrays[0].obs.arrays

    def episodes(self) -> list[Episode]:
        """Return the episodes with what an environment like this one would have seen."""
        seen: list[dict[str, list[NDArray]]] = [{} for _ in self._trajectories]
        for step, arrays in enumerate(self.frames()):
            for row, trajectory in enumerate(self._trajectories):
                for name, array in arrays.items() if step < len(trajectory.states) else ():
                    seen[row].setdefault(name, []).append(array[row].copy())
        return [
            Episode(
                {name: np.stack(rows) for name, rows in obs.items()}, t.action, t.reward,
                t.terminated, t.truncated, t.success, t.seed, t.sentence, states=t.states,
            )
            for obs, t in zip(seen, self._trajectories, strict=True)
        ]  # fmt: skip


def put_state(row: Any, state: dict[str, Any]) -> None:
    """Bring a row to a state that a file told, which may be of another model.

    Raises:
        ManipleError: It does not fit.
    """
    try:
        row.sim_state = state
    except ManipleError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadConfig(f"A recorded state does not fit this task: {error}.") from None
