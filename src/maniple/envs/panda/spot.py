"""Choose where a task's scene stands on the table, and where things lie in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.sim.rotation import quat_mul, quat_rotate, yaw_quat

TABLE_M = 0.752
CENTRE = np.array([0.25, 0.0])
HALF = np.array([0.325, 0.455])
"""Half the workspace, in which a whole scene has to fit (metres)."""
SHOULDER = np.array([-0.268, -0.0082, 1.083])
NEAREST_M, FURTHEST_M = 0.28, 0.70
"""How far joint 6 may be from the shoulder."""
ELBOW_ROOM_M = 0.088
TRIES = 24

Corners = tuple[tuple[float, float], tuple[float, float]]


def scene_pose(
    rng: Draws,
    yaw: tuple[float, float],
    corners: Corners,
    wrists: NDArray,
) -> NDArray:
    """Draw a scene's pose on the table, (rows, 7), as RLBench does.

    Args:
        rng: The rows' random numbers.
        yaw: Least and largest turn about the vertical (rad).
        corners: The scene's least and largest x and y in its own frame; it fits the workspace.
        wrists: Points (n, 3) of the scene's frame that the wrist must get to.
    """
    turns = rng.uniform(*yaw, shape=(TRIES,))
    low, high = _room(turns, corners)
    xy = low + (high - low) * rng.random((TRIES, 2))
    # RLBench draws again where its planner fails; the first of many draws in reach is the same.
    fits = _are_reached(xy, turns, wrists) & (high >= low - 0.05).all(-1)
    first = np.argmax(fits, axis=1)
    rows = np.arange(len(rng))
    chosen = xy[rows, first]
    flat = np.concatenate([chosen, np.full((len(rng), 1), TABLE_M)], axis=1)
    return np.concatenate([flat, yaw_quat(turns[rows, first])], axis=1)


def _room(turns: NDArray, corners: Corners) -> tuple[NDArray, NDArray]:
    """Least and largest place of a turned scene, (rows, tries, 2); its middle if it is too big."""
    (x0, y0), (x1, y1) = corners
    cos, sin = np.cos(turns), np.sin(turns)
    xs = np.stack([cos * x - sin * y for x in (x0, x1) for y in (y0, y1)])
    ys = np.stack([sin * x + cos * y for x in (x0, x1) for y in (y0, y1)])
    low = np.stack([-xs.min(0), -ys.min(0)], -1) + (CENTRE - HALF)
    high = np.stack([-xs.max(0), -ys.max(0)], -1) + (CENTRE + HALF)
    middle = (low + high) / 2
    is_too_big = low > high
    return np.where(is_too_big, middle, low), np.where(is_too_big, middle, high)


def _are_reached(xy: NDArray, turns: NDArray, wrists: NDArray) -> NDArray[np.bool_]:
    cos, sin = np.cos(turns)[..., None], np.sin(turns)[..., None]
    x = xy[..., 0:1] + cos * wrists[:, 0] - sin * wrists[:, 1] - SHOULDER[0]
    y = xy[..., 1:2] + sin * wrists[:, 0] + cos * wrists[:, 1] - SHOULDER[1]
    z = TABLE_M + wrists[:, 2] - SHOULDER[2]
    # Joint 6 stands this much nearer than the wrist's end.
    level = np.sqrt(x * x + y * y) - ELBOW_ROOM_M
    far = np.sqrt(level * level + z * z)
    return ((far > NEAREST_M) & (far < FURTHEST_M) & (x > 0.05)).all(-1)


def on(base: NDArray, offset: Sequence[float] | NDArray, yaw: float | NDArray = 0.0) -> NDArray:
    """Poses in a scene's frame as world poses, (rows, 7)."""
    pos = base[:, :3] + quat_rotate(base[:, 3:], np.asarray(offset, np.float64))
    turn = yaw_quat(np.broadcast_to(np.asarray(yaw, np.float64), (len(base),)))
    return np.concatenate([pos, quat_mul(base[:, 3:], turn)], axis=1)


def scatter(
    rng: Draws,
    count: int,
    low: Sequence[float],
    high: Sequence[float],
    gap_m: float,
    around: Sequence[Sequence[float]] = (),
) -> NDArray:
    """Draw places that keep a distance from each other and from given ones: (rows, count, 2)."""
    rows = np.arange(len(rng))
    taken = [np.broadcast_to(np.asarray(p, np.float64), (len(rng), 2)) for p in around]
    for _ in range(count):
        drawn = rng.uniform(low, high, (TRIES, 2))
        gaps = [np.hypot(*np.moveaxis(drawn - t[:, None], -1, 0)) for t in taken]
        nearest = np.min(gaps, axis=0) if gaps else np.full((len(rng), TRIES), np.inf)
        # The first that is far enough, or else the one that is furthest.
        pick = np.where((nearest >= gap_m).any(1), np.argmax(nearest >= gap_m, axis=1),
                        np.argmax(nearest, axis=1))  # fmt: skip
        taken.append(drawn[rows, pick])
    return np.stack(taken[len(around) :], axis=1)
