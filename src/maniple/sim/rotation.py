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
    pos: Sequence[float] | NDArray,
    at: Sequence[float] | NDArray,
    up: Sequence[float] = (0.0, 0.0, 1.0),
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
    total = _cross(mat_from[..., :, 0], mat_to[..., :, 0])
    total += _cross(mat_from[..., :, 1], mat_to[..., :, 1])
    total += _cross(mat_from[..., :, 2], mat_to[..., :, 2])
    return 0.5 * total


def _cross(a: NDArray, b: NDArray) -> NDArray:
    """What np.cross gives, without its checks, which cost as much as an iteration's algebra."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    out[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    out[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return out


def quat_mat(quat_wxyz: NDArray) -> NDArray:
    """Rotation matrices of unit quaternions: (..., 4) to (..., 3, 3)."""
    w, x, y, z = np.moveaxis(np.asarray(quat_wxyz, np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def quat_mul(a_wxyz: NDArray, b_wxyz: NDArray) -> NDArray:
    """Turn by b, then by a: (..., 4) each."""
    aw, ax, ay, az = np.moveaxis(np.asarray(a_wxyz, np.float64), -1, 0)
    bw, bx, by, bz = np.moveaxis(np.asarray(b_wxyz, np.float64), -1, 0)
    parts = (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )
    return np.stack(np.broadcast_arrays(*parts), -1)


def quat_conj(quat_wxyz: NDArray) -> NDArray:
    """The turn back: (..., 4)."""
    return quat_wxyz * np.array([1.0, -1.0, -1.0, -1.0])


def quat_rotate(quat_wxyz: NDArray, vector: NDArray) -> NDArray:
    """Turn vectors: (..., 4) and (..., 3) to (..., 3)."""
    return mat_rotate(quat_mat(quat_wxyz), np.asarray(vector, np.float64))


def mat_rotate(mat: NDArray, vector: NDArray) -> NDArray:
    """Turn vectors: (..., 3, 3) and (..., 3) to (..., 3), added term by term.

    The bits must not depend on how many rows there are, as those of a matrix product may.
    """
    x, y, z = vector[..., 0:1], vector[..., 1:2], vector[..., 2:3]
    return mat[..., 0] * x + mat[..., 1] * y + mat[..., 2] * z


def mats_quat(mat: NDArray) -> NDArray:
    """Quaternions of many rotation matrices: (..., 3, 3) to (..., 4)."""
    m = np.asarray(mat, np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    # Four ways of writing the same quaternion, of which the one with the largest leading part is
    # exact. Filled in place: np.stack takes longer than all of the algebra.
    ways = np.empty((*m.shape[:-2], 4, 4))
    ways[..., 0, 0] = 1 + xx + yy + zz
    ways[..., 1, 1] = 1 + xx - yy - zz
    ways[..., 2, 2] = 1 - xx + yy - zz
    ways[..., 3, 3] = 1 - xx - yy + zz
    for k, i, j in ((1, 2, 1), (2, 0, 2), (3, 1, 0)):
        ways[..., 0, k] = ways[..., k, 0] = m[..., i, j] - m[..., j, i]
    for k, i in ((1, 2), (1, 3), (2, 3)):
        ways[..., k, i] = ways[..., i, k] = m[..., i - 1, k - 1] + m[..., k - 1, i - 1]
    flat = ways.reshape(-1, 16)
    best = flat[:, ::5].argmax(1)
    quat = flat.reshape(-1, 4)[np.arange(0, 4 * len(flat), 4) + best].reshape(ways.shape[:-1])
    return quat / _length(quat)


def turn_angle(from_wxyz: NDArray, to_wxyz: NDArray) -> NDArray:
    """Angle between orientations, rad: (..., 4) each to (..., 1)."""
    way = quat_mul(to_wxyz, quat_conj(from_wxyz))
    return 2 * np.arctan2(_length(way[..., 1:]), np.abs(way[..., :1]))


def turn_part(from_wxyz: NDArray, to_wxyz: NDArray, part: NDArray) -> NDArray:
    """Turn quaternions a part (..., 1) of the way to others, the short way: (..., 4)."""
    way = quat_mul(to_wxyz, quat_conj(from_wxyz))
    way = np.where(way[..., :1] < 0, -way, way)
    sine = _length(way[..., 1:])
    half = np.arctan2(sine, way[..., :1]) * part
    axis = way[..., 1:] / np.maximum(sine, 1e-12)
    step = np.concatenate([np.cos(half), axis * np.sin(half)], -1)
    return quat_mul(step, from_wxyz)


def chord(from_wxyz: NDArray, to_wxyz: NDArray) -> tuple[NDArray, NDArray]:
    """Straight way between quaternions (..., 4), the short one, and its length (..., 1).

    For a turn by an angle it is 2 sin(angle / 4) long. No sine is taken: numpy does
    not promise that its bits are the same for any number of rows.
    """
    dot = (
        from_wxyz[..., 0:1] * to_wxyz[..., 0:1]
        + from_wxyz[..., 1:2] * to_wxyz[..., 1:2]
        + from_wxyz[..., 2:3] * to_wxyz[..., 2:3]
        + from_wxyz[..., 3:4] * to_wxyz[..., 3:4]
    )
    way = np.where(dot < 0, -to_wxyz, to_wxyz) - from_wxyz
    return way, _length(way)


def unit(vectors: NDArray) -> NDArray:
    """Vectors of length 1 along the last axis."""
    return vectors / _length(vectors)


def small_turn(turn_rad: NDArray) -> NDArray:
    """Quaternions of small rotation vectors, (..., 3) to (..., 4): 1 % short at half a radian."""
    return unit(np.concatenate([np.ones_like(turn_rad[..., :1]), turn_rad / 2], -1))


def rotation_vector(quat_wxyz: NDArray) -> NDArray:
    """Rotation vectors (rad) of quaternions, the short way: (..., 4) to (..., 3)."""
    quat = np.where(quat_wxyz[..., :1] < 0, -quat_wxyz, quat_wxyz)
    sine = _length(quat[..., 1:])
    angle = 2 * np.arctan2(sine, quat[..., :1])
    return quat[..., 1:] / np.maximum(sine, 1e-12) * angle


def _length(vectors: NDArray) -> NDArray:
    """Length along the last axis, which is kept; added term by term."""
    total = vectors[..., 0:1] * vectors[..., 0:1]
    for k in range(1, vectors.shape[-1]):
        total = total + vectors[..., k : k + 1] * vectors[..., k : k + 1]
    return np.sqrt(total)
