"""Derive pictures from drawn ones: points in the world from depth, bodies from geoms."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray


def points_w(
    model: mujoco.MjModel, data: mujoco.MjData, camera: int, depth: NDArray
) -> NDArray[np.float32]:
    """World positions of a depth picture's pixels, (h, w, 3), metres."""
    height, width = depth.shape
    top = np.tan(np.radians(model.cam_fovy[camera]) / 2)
    y = top * (1 - (np.arange(height) + 0.5) * 2 / height)
    x = top * width / height * ((np.arange(width) + 0.5) * 2 / width - 1)
    away = depth.astype(np.float64)
    points_c = np.stack([x[None, :] * away, y[:, None] * away, -away], -1)
    turn = data.cam_xmat[camera].reshape(3, 3)
    return (points_c @ turn.T + data.cam_xpos[camera]).astype(np.float32)


def body_mask(model: mujoco.MjModel, geoms: NDArray) -> NDArray[np.int32]:
    """Body numbers of a picture of geom numbers; 0 is the world, and the sky."""
    bodies = np.append(model.geom_bodyid, 0).astype(np.int32)
    return bodies[geoms]


def intrinsics(model: mujoco.MjModel, camera: int, height: int, width: int) -> NDArray:
    """Camera matrix in the usual convention: x right, y down, focal lengths above zero."""
    focal = (height / 2) / np.tan(np.radians(model.cam_fovy[camera]) / 2)
    return np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])


def rlbench_facts(
    model: mujoco.MjModel, camera: int, pos: NDArray, mat: NDArray, height: int, width: int
) -> dict[str, NDArray]:
    """Describe a camera at a pose as RLBench does: x left, y up, z forward; metres."""
    matrix = intrinsics(model, camera, height, width)
    matrix[[0, 1], [0, 1]] *= -1.0
    extrinsics = np.eye(4)
    extrinsics[:3, :3] = np.reshape(mat, (3, 3)) * np.array([-1.0, 1.0, -1.0])
    extrinsics[:3, 3] = pos
    extent, near_far = model.stat.extent, model.vis.map
    return {
        "intrinsics": matrix,
        "extrinsics": extrinsics,
        "near": np.asarray(near_far.znear * extent),
        "far": np.asarray(near_far.zfar * extent),
    }
