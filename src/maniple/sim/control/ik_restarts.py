"""Find joint positions for a pose that may be far away, from many starts at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.sim.control.ik import Kinematics, damped_step, is_small, limited, pose_error

ITERATIONS = 60
LARGEST_STEP_RAD = 0.4
EXACT_M, EXACT_RAD = 5e-4, 2e-3
ROUNDS = 4


def find_near(
    kinematics: Kinematics, q: NDArray, pos: NDArray, mat: NDArray, seed: int
) -> NDArray | None:
    """Return joint positions at a pose, the nearest of those found to `q`, or nothing.

    Every row of the kinematics is one start: `q` itself, places around it, then anywhere.
    """
    rng = np.random.default_rng(seed)
    rows = kinematics.rows
    for k in range(ROUNDS):
        starts = rng.uniform(kinematics.low, kinematics.high, (rows, len(q)))
        if k == 0:
            near = q + rng.normal(0.0, 0.3, (rows, len(q)))
            starts[: rows // 2] = np.clip(near, kinematics.low, kinematics.high)[: rows // 2]
            starts[0] = q
        found, is_there = solve(kinematics, starts, pos, mat)
        if is_there.any():
            gaps = np.abs(found - q).max(1)
            return found[np.argmin(np.where(is_there, gaps, np.inf))]
    return None


def solve(
    kinematics: Kinematics, q: NDArray, pos: NDArray, mat: NDArray
) -> tuple[NDArray, NDArray[np.bool_]]:
    """Go from each row's start to a pose (one for all, or one per row); say which got there."""
    still = np.zeros_like(q)
    for _ in range(ITERATIONS):
        tip, turn = kinematics.forward(q)
        error = pose_error(tip, turn, pos, mat)
        step = damped_step(kinematics.jacobian(tip), error, 0.03, still)
        q = np.clip(q + limited(step, LARGEST_STEP_RAD), kinematics.low, kinematics.high)
    error = pose_error(*kinematics.forward(q), pos, mat)
    return q, is_small(error, EXACT_M, EXACT_RAD)
