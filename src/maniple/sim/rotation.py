"""Rotations as batched arrays: quaternions are (w, x, y, z), the env axis comes first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def euler_mat(rpy: ArrayLike) -> NDArray:
    """Matrix of roll, pitch, yaw about fixed x, y, z (rad): (..., 3) to (..., 3, 3)."""
    rpy = np.asarray(rpy, np.float64)
    cx, cy, cz = np.moveaxis(np.cos(rpy), -1, 0)
    sx, sy, sz = np.moveaxis(np.sin(rpy), -1, 0)
    rows = [
        [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
        [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
        [-sy, cy * sx, cy * cx],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def yaw_quat(yaw_rad: ArrayLike) -> NDArray:
    """Quaternion of a turn about the vertical: (...) to (..., 4)."""
    half = np.asarray(yaw_rad, np.float64) / 2
    zero = np.zeros_like(half)
    return np.stack([np.cos(half), zero, zero, np.sin(half)], -1)


def quat_yaw(quat_wxyz: NDArray) -> NDArray:
    """Turn about the vertical: (..., 4) to (...), rad."""
    w, x, y, z = np.moveaxis(quat_wxyz, -1, 0)
    return np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def mat_quat(mat: NDArray) -> NDArray:
    """Quaternion of one rotation matrix, (3, 3) to (4,)."""
    w = np.sqrt(max(0.0, 1 + mat[0, 0] + mat[1, 1] + mat[2, 2])) / 2
    x = np.sqrt(max(0.0, 1 + mat[0, 0] - mat[1, 1] - mat[2, 2])) / 2
    y = np.sqrt(max(0.0, 1 - mat[0, 0] + mat[1, 1] - mat[2, 2])) / 2
    z = np.sqrt(max(0.0, 1 - mat[0, 0] - mat[1, 1] + mat[2, 2])) / 2
    x = np.copysign(x, mat[2, 1] - mat[1, 2])
    y = np.copysign(y, mat[0, 2] - mat[2, 0])
    z = np.copysign(z, mat[1, 0] - mat[0, 1])
    return np.array([w, x, y, z])


def look_quat(
    pos: Sequence[float], at: Sequence[float], up: Sequence[float] = (0.0, 0.0, 1.0)
) -> NDArray:
    """Quaternion of a camera at `pos` that looks at `at`, with `up` upwards in the picture."""
    back = np.asarray(pos, np.float64) - np.asarray(at, np.float64)
    back /= np.linalg.norm(back)
    # Looking along "up" there is none in the picture: take x.
    right = np.cross(up if abs(np.dot(up, back)) < 0.999 else (1.0, 0.0, 0.0), back)
    right /= np.linalg.norm(right)
    return mat_quat(np.stack([right, np.cross(back, right), back], -1))


def turn_between(mat_from: NDArray, mat_to: NDArray) -> NDArray:
    """Small rotation vector (rad, world) that turns one matrix towards another: (n, 3).

    Half the sum of the axes' cross products: exact in direction, and in length for small turns.
    """
    total = np.cross(mat_from[..., :, 0], mat_to[..., :, 0])
    total += np.cross(mat_from[..., :, 1], mat_to[..., :, 1])
    total += np.cross(mat_from[..., :, 2], mat_to[..., :, 2])
    return 0.5 * total
