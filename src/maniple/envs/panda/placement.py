"""Choose where a task's scene stands on the table, and where things lie in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.sim.rotation import quat_mul, quat_rotate, quat_yaw, yaw_quat

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
    nearest_m: float = NEAREST_M,
) -> NDArray:
    """Draw a scene's pose on the table, (rows, 7), as RLBench does.

    Args:
        rng: The rows' random numbers.
        yaw: Least and largest turn about the vertical (rad).
        corners: The scene's least and largest x and y in its own frame; it fits the workspace.
        wrists: Points (n, 3) of the scene's frame that the wrist must get to.
        nearest_m: How far from the shoulder joint 6 has to stay.
    """
    turns = rng.uniform(*yaw, shape=(TRIES,))
    low, high = _room(turns, corners)
    xy = low + (high - low) * rng.random((TRIES, 2))
    # RLBench draws again where its planner fails; the first of many draws in reach is the same.
    fits = _are_reached(xy, turns, wrists, nearest_m) & (high >= low - 0.05).all(-1)
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


def _are_reached(
    xy: NDArray, turns: NDArray, wrists: NDArray, nearest_m: float
) -> NDArray[np.bool_]:
    cos, sin = np.cos(turns)[..., None], np.sin(turns)[..., None]
    x = xy[..., 0:1] + cos * wrists[:, 0] - sin * wrists[:, 1] - SHOULDER[0]
    y = xy[..., 1:2] + sin * wrists[:, 0] + cos * wrists[:, 1] - SHOULDER[1]
    z = TABLE_M + wrists[:, 2] - SHOULDER[2]
    return np.asarray(_is_in_range(x, y, z, nearest_m).all(-1))


def _is_in_range(
    x: NDArray, y: NDArray, z: NDArray, nearest_m: float = NEAREST_M
) -> NDArray[np.bool_]:
    # Joint 6 stands this much nearer than the wrist's end.
    level = np.sqrt(x * x + y * y) - ELBOW_ROOM_M
    far = np.sqrt(level * level + z * z)
    return (far > nearest_m) & (far < FURTHEST_M) & (x > 0.05)


def on(base: NDArray, offset: Sequence[float] | NDArray, yaw: float | NDArray = 0.0) -> NDArray:
    """Poses in a scene's frame as world poses, (rows, 7)."""
    pos = base[:, :3] + quat_rotate(base[:, 3:], np.asarray(offset, np.float64))
    turn = yaw_quat(np.broadcast_to(np.asarray(yaw, np.float64), (len(base),)))
    return np.concatenate([pos, quat_mul(base[:, 3:], turn)], axis=1)


def scatter(
    rng: Draws,
    base: NDArray,
    count: int,
    low: Sequence[float],
    high: Sequence[float],
    gap_m: float,
    around: Sequence[Sequence[float]] = (),
    wrist_m: float = 0.25,
) -> NDArray:
    """Draw places in a scene's frame that keep a distance from each other: (rows, count, 2).

    Args:
        rng: The rows' random numbers.
        base: Where the scenes stand, (rows, 7).
        count: How many places.
        low: Least x and y.
        high: Largest x and y.
        gap_m: Distance that they keep from each other and from `around`.
        around: Places that are taken already.
        wrist_m: How high above a place the wrist must get; 0 for places nobody goes to.
    """
    rows = np.arange(len(rng))
    taken = [np.broadcast_to(np.asarray(p, np.float64), (len(rng), 2)) for p in around]
    turn = quat_yaw(base[:, 3:])[:, None]
    for _ in range(count):
        drawn = rng.uniform(low, high, (TRIES, 2))
        score = np.full((len(rng), TRIES), 5.0)
        for other in taken:
            way = drawn - other[:, None]
            score = np.minimum(score, np.sqrt(way[..., 0] ** 2 + way[..., 1] ** 2))
        if wrist_m:
            spots = np.concatenate([drawn, np.full((*drawn.shape[:2], 1), wrist_m)], -1)
            score = np.where(_is_reached(base, turn, spots), score, score - 10.0)
        # The first that is far enough, or else the one that is furthest.
        is_good = score >= gap_m
        pick = np.where(is_good.any(1), np.argmax(is_good, axis=1), np.argmax(score, axis=1))
        taken.append(drawn[rows, pick])
    return np.stack(taken[len(around) :], axis=1)


def lying(base: NDArray, xy: NDArray, z_m: float, yaw: float | NDArray = 0.0) -> NDArray:
    """Poses of things that lie at places (rows, 2) of a scene, (rows, 7)."""
    return on(base, np.concatenate([xy, np.full((len(xy), 1), z_m)], axis=1), yaw)


def _is_reached(base: NDArray, turn: NDArray, spots: NDArray) -> NDArray[np.bool_]:
    """Whether the wrist gets to points (rows, tries, 3), each row in its own scene."""
    cos, sin = np.cos(turn), np.sin(turn)
    x = base[:, 0:1] + cos * spots[..., 0] - sin * spots[..., 1] - SHOULDER[0]
    y = base[:, 1:2] + sin * spots[..., 0] + cos * spots[..., 1] - SHOULDER[1]
    return _is_in_range(x, y, TABLE_M + spots[..., 2] - SHOULDER[2])
