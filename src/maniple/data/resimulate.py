"""Take a recording's actions again, and compare the states that follow bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maniple.core.action import ActionCheck
from maniple.core.errors import BadAction
from maniple.core.group import Group
from maniple.core.step import StepArrays
from maniple.data.redraw import put_state
from maniple.data.trajectory import Trajectory


class Departure(NamedTuple):
    """Where the states that follow are no longer those that were recorded."""

    step: int
    """Actions after which they differ; the states before are the same bits."""
    gap: float
    """Largest difference of a number of the state, there."""
    why: str = ""
    """What kept the action from being taken, if something did."""


def departures(group: Group, trajectories: Sequence[Trajectory]) -> list[Departure | None]:
    """Go on from every first state, one in each row; return where they depart, None: nowhere."""
    rows, check = len(trajectories), ActionCheck(group.contract)
    found: list[Departure | None] = [None] * len(trajectories)
    group.bind(StepArrays(group.contract.observation, group.contract.extras, rows))
    group.reset(np.arange(rows), [0] * rows, {})
    for row, trajectory in enumerate(trajectories):
        put_state(group.row(row), trajectory.states.at(0))
    actions = np.zeros((rows, *group.contract.action["action"].shape))
    active = np.zeros(rows, np.bool_)
    for step in range(max(len(t) for t in trajectories)):
        for row, trajectory in enumerate(trajectories):
            active[row] = step < len(trajectory) and found[row] is None
            if not active[row]:
                continue
            try:
                actions[row] = check(trajectory.action[step][None], (1,))[0]
            except (BadAction, ValueError) as error:
                found[row], active[row] = Departure(step + 1, float("nan"), str(error)), False
        if not active.any():
            break
        kind = trajectories[0].action.dtype
        group.step(actions.astype(kind), active.copy())
        group.row_infos()
        for row in np.flatnonzero(active).tolist():
            now = group.row(row).sim_state["integration"]
            then = trajectories[row].states.integration[step + 1]
            if now.tobytes() != then.tobytes():
                found[row] = Departure(step + 1, float(np.abs(now - then).max()))
    return found
