"""A batch of transitions, as a replay buffer gives it and an agent learns from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Transitions(NamedTuple):
    """Transitions, one per row: what was seen, done and got, and what was seen then."""

    obs: dict[str, NDArray]
    action: NDArray[np.float32]
    reward: NDArray[np.float32]
    """Sum of the rewards on the way, discounted."""
    discount: NDArray[np.float32]
    """Weight of what comes after `next_obs`: 0 where the episode terminated, never where it was
    only cut short."""
    next_obs: dict[str, NDArray]
    shown: int = 0
    """How many of the first rows are demonstrations."""


def join(a: Transitions, b: Transitions) -> Transitions:
    """Put two batches behind each other."""
    cat = lambda x, y: np.concatenate([x, y])  # noqa: E731
    return Transitions(
        {name: cat(a.obs[name], b.obs[name]) for name in a.obs},
        cat(a.action, b.action),
        cat(a.reward, b.reward),
        cat(a.discount, b.discount),
        {name: cat(a.next_obs[name], b.next_obs[name]) for name in a.next_obs},
    )
