"""One episode: what was seen, what was done, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.data.sim_states import SimStates

NO_SEED = -1
"""The seed of an episode that was not begun from one, as on a real robot."""


@dataclass(frozen=True, eq=False)
class Episode:
    """An episode of T actions; step t leads from obs[t] through action[t] to obs[t + 1]."""

    obs: dict[str, NDArray]
    """Arrays by their names in the Layout, (T + 1, ...): the last row is the final observation."""

    action: NDArray
    """(T, ...)."""

    reward: NDArray[np.float32]
    """(T,): reward[t] is the answer to action[t]."""

    terminated: bool
    """The last step reached an end state: nothing can be earned after it."""

    truncated: bool
    """The last step was cut off, by a time limit or a fault: the future would have gone on."""

    success: bool
    """The task was solved."""

    seed: int = NO_SEED
    """reset(seed=...) with this number begins the same episode."""

    task: str = ""
    """What the robot was asked to do, in words."""

    intervention: NDArray[np.bool_] | None = None
    """(T,): the steps that a person chose; None: nobody could step in."""

    states: SimStates | None = None
    """The simulator's states, one for each observation, where they were asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reward", np.asarray(self.reward, np.float32))
        steps = len(self.action)
        if steps < 1:
            raise BadConfig("An episode needs at least one action; this one has none.")
        if self.reward.shape != (steps,):
            raise BadConfig(
                f"An episode of {steps} actions needs rewards of shape ({steps},), "
                f"not {self.reward.shape}."
            )
        if self.intervention is not None and self.intervention.shape != (steps,):
            raise BadConfig(
                f"An episode of {steps} actions needs marks of interventions of shape ({steps},), "
                f"not {self.intervention.shape}."
            )
        for name, array in self.obs.items():
            if len(array) != steps + 1:
                raise BadConfig(
                    f"{name!r} has {len(array)} rows for {steps} actions; it needs {steps + 1}, "
                    "the final observation included."
                )

    def __len__(self) -> int:
        return len(self.action)
