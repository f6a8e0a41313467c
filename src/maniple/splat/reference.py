"""Draw splats in numpy, in double precision and one splat after the other: the oracle.

It is also what draws where there was no compiler. It begins with the clouds, not with what was laid
out for the rasteriser, and inverts covariances as matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.splat.cloud import C0, MODES
from maniple.splat.compiled import Bound, CompiledScene

STOP, LEAST_ALPHA, MOST_ALPHA, MAX_SLOPE = 1e-4, 1.0 / 255.0, 0.999, 1.3


class Camera(NamedTuple):
    """A pinhole camera that looks along its z axis, with y down."""

    pos: NDArray[np.float64]
    turn: NDArray[np.float64]
    """Rows are its axes in the world."""
    fovy_deg: float
    size: tuple[int, int]

    @property
    def focal_px(self) -> float:
        """Pixels per unit of slope."""
        return 0.5 * self.size[0] / np.tan(np.radians(self.fovy_deg) / 2)


class Splats(NamedTuple):
    """Gaussians in a picture."""

    z: NDArray
    centre: NDArray
    conic: NDArray
    opacity: NDArray
    half: NDArray
    rgb: NDArray
    geom: NDArray
    slope: NDArray
    """Of the inverse depth, per pixel."""
    largest: NDArray


def camera_of(pos: NDArray, mat: NDArray, fovy_deg: float, size: tuple[int, int]) -> Camera:
    """Turn a MuJoCo camera, which looks along -z with y up, into a Camera."""
    turn = (np.asarray(mat, np.float64).reshape(3, 3) @ np.diag([1.0, -1.0, -1.0])).T
    return Camera(np.asarray(pos, np.float64), turn, fovy_deg, size)


def draw_reference(
    scene: CompiledScene,
    row: Mapping[str, NDArray],
    camera: Camera,
    tint: NDArray | None = None,
    solid: Mapping[str, NDArray] | None = None,
) -> dict[str, NDArray]:
    """Return rgb and alpha (floats), depth and segmentation of one row and camera."""
    found = [_project(scene, group, row, camera, tint) for group in scene.bound]
    splats = Splats(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))
    height, width = camera.size
    t = np.ones((height, width))
    is_open = np.ones((height, width), np.bool_)
    rgb, near = np.zeros((height, width, 3)), np.zeros((height, width))
    label = np.full((height, width), -1, np.int32)
    limit = None if solid is None else _limit(solid, scene.far)
    for k in np.argsort(splats.z, kind="stable"):
        x0, x1 = _pixels(splats.centre[k, 0], splats.half[k, 0], width)
        y0, y1 = _pixels(splats.centre[k, 1], splats.half[k, 1], height)
        if x0 >= x1 or y0 >= y1:
            continue
        at = (slice(y0, y1), slice(x0, x1))
        dx = np.arange(x0, x1) + 0.5 - splats.centre[k, 0]
        dy = (np.arange(y0, y1) + 0.5 - splats.centre[k, 1])[:, None]
        (a, b), (_, c) = splats.conic[k]
        alpha = splats.opacity[k] * np.exp(-0.5 * (a * dx * dx + 2 * b * dx * dy + c * dy * dy))
        iz = 1.0 / splats.z[k]
        spread = iz * min(3.0 * splats.largest[k] * iz, 0.5)
        here = np.clip(iz + splats.slope[k, 0] * dx + splats.slope[k, 1] * dy,
                       iz - spread, iz + spread)  # fmt: skip
        hit = (alpha >= LEAST_ALPHA) & is_open[at]
        if limit is not None:
            hit &= here >= limit[at]
        alpha = np.where(hit, np.minimum(alpha, MOST_ALPHA), 0.0)
        after = t[at] * (1.0 - alpha)
        ends = hit & (after <= STOP)
        is_open[at] &= ~ends
        weight = np.where(ends, 0.0, alpha * t[at])
        after = np.where(ends, t[at], after)
        rgb[at] += weight[..., None] * splats.rgb[k]
        near[at] += weight * here
        label[at] = np.where((t[at] > 0.5) & (after <= 0.5), splats.geom[k], label[at])
        t[at] = after
    return _finish(scene, camera, t, rgb, near, label, solid)


def _pixels(centre: float, half: float, count: int) -> tuple[int, int]:
    low, high = centre - half - 0.5, centre + half - 0.5
    if not (high >= 0 and low <= count - 1):
        return 0, 0
    return int(np.ceil(max(low, 0))), int(np.floor(min(high, count - 1))) + 1


def _limit(solid: Mapping[str, NDArray], far: float) -> NDArray:
    depth = solid["depth"].astype(np.float64)
    return np.where(depth < far, 1.0 / depth, 0.0)


def _project(
    scene: CompiledScene, group: Bound, row: Mapping[str, NDArray], camera: Camera, tint
) -> Splats:
    cloud = group.cloud
    body_turn, body_pos = row["xmat"][group.body].reshape(3, 3), row["xpos"][group.body]
    m = camera.turn @ body_turn
    p = cloud.means.astype(np.float64) @ m.T + camera.turn @ (body_pos - camera.pos)
    eps2d, is_antialiased = MODES[cloud.mode]
    focal, (height, width) = camera.focal_px, camera.size
    with np.errstate(all="ignore"):
        u, v = p[:, 0] / p[:, 2], p[:, 1] / p[:, 2]
        limit_x, limit_y = MAX_SLOPE * 0.5 * width / focal, MAX_SLOPE * 0.5 * height / focal
        uc, vc = np.clip(u, -limit_x, limit_x), np.clip(v, -limit_y, limit_y)
        zero = np.zeros_like(u)
        jacobian = (focal / p[:, 2])[:, None, None] * np.stack(
            [np.stack([zero + 1, zero, -uc], 1), np.stack([zero, zero + 1, -vc], 1)], 1
        )
        factor = m @ group.factors
        half = jacobian @ factor
        sharp = half @ half.transpose(0, 2, 1)
        cov = sharp + eps2d * np.eye(2)
        # Of three vectors in the plane: exact where a needle's covariance is nearly singular.
        thin = (np.cross(half[:, 0], half[:, 1]) ** 2).sum(1)
        det = thin + eps2d * (sharp[:, 0, 0] + sharp[:, 1, 1]) + eps2d**2
        opacity = cloud.opacities.astype(np.float64)
        if is_antialiased:
            opacity = opacity * np.sqrt(np.maximum(thin / det, 1e-20))
        conic = np.stack(
            [np.stack([cov[:, 1, 1], -cov[:, 0, 1]], 1),
             np.stack([-cov[:, 1, 0], cov[:, 0, 0]], 1)], 1,
        ) / det[:, None, None]  # fmt: skip
        reach = np.sqrt(np.maximum(2 * np.log(opacity / LEAST_ALPHA), 0.0))
        half_px = reach[:, None] * np.sqrt(np.stack([cov[:, 0, 0], cov[:, 1, 1]], 1))
    normal = group.normals @ m.T
    plane = (normal * p).sum(1)
    rgb, seen = colours_of(scene, group, row, camera, tint)
    seen = seen & (p[:, 2] > scene.near) & (opacity > LEAST_ALPHA)
    safe = np.where(np.abs(plane) > 1e-9, plane, 1e-9)
    slope = normal[:, :2] / (safe * focal)[:, None]
    centre = np.stack([focal * u + 0.5 * width, focal * v + 0.5 * height], 1)
    every = Splats(p[:, 2], centre, conic, opacity, half_px, rgb, group.geoms, slope,
                   cloud.scales.max(1))  # fmt: skip
    return Splats(*(array[seen] for array in every))


def colours_of(
    scene: CompiledScene,
    group: Bound,
    row: Mapping[str, NDArray],
    camera: Camera,
    tint: NDArray | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return what Gaussians look like to a camera, and which of them do not face away from it."""
    cloud, normals = group.cloud, group.normals
    turn, pos = row["xmat"][group.body].reshape(3, 3), row["xpos"][group.body]
    direction = cloud.means - turn.T @ (camera.pos - pos)
    faces = (normals * direction).sum(1) < 0
    direction /= np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-12)
    rgb = 0.5 + np.einsum("nk,nkc->nc", _harmonics(direction)[:, : cloud.sh.shape[1]], cloud.sh)
    if tint is not None:
        geoms = np.where(group.geoms >= 0, group.geoms, scene.labels - 1)
        rgb = rgb * tint[geoms, :3] + tint[geoms, 3:]
    rgb = np.maximum(rgb, 0.0)
    if group.is_lit:
        front = np.where(faces[:, None], normals, -normals)
        rgb = _lit(scene, group, row, camera, rgb, front @ turn.T, direction @ turn.T)
    return rgb, faces | group.is_two_sided


def _harmonics(d: NDArray) -> NDArray:
    """The 16 real spherical harmonics of directions, (n, 16)."""
    x, y, z = d.T
    return np.stack(
        [
            np.full_like(x, C0),
            -0.4886025119029199 * y, 0.4886025119029199 * z, -0.4886025119029199 * x,
            1.0925484305920792 * x * y, -1.0925484305920792 * y * z,
            0.31539156525252005 * (2 * z * z - x * x - y * y),
            -1.0925484305920792 * x * z, 0.5462742152960396 * (x * x - y * y),
            -0.5900435899266435 * y * (3 * x * x - y * y), 2.890611442640554 * x * y * z,
            -0.4570457994644658 * y * (4 * z * z - x * x - y * y),
            0.3731763325901154 * z * (2 * z * z - 3 * x * x - 3 * y * y),
            -0.4570457994644658 * x * (4 * z * z - x * x - y * y),
            1.445305721320277 * z * (x * x - y * y), -0.5900435899266435 * x * (x * x - 3 * y * y),
        ],
        1,
    )  # fmt: skip


def _lit(scene, group, row, camera, albedo, normal_w, direction_w) -> NDArray:
    """Light Gaussians as MuJoCo's fixed-function pipeline lights vertices."""
    around = scene.surroundings
    body_turn, body_pos = row["xmat"][group.body].reshape(3, 3), row["xpos"][group.body]
    at = group.cloud.means @ body_turn.T + body_pos
    has_geom = (group.geoms >= 0)[:, None]
    emission, specular, shininess = (
        np.where(has_geom, values[group.geoms][:, None], 0.0).astype(np.float64)
        for values in (around.emission, around.specular, around.shininess)
    )
    total = albedo * emission
    lights = []
    if around.has_headlight:
        ambient, diffuse, shine = around.headlight.reshape(3, 3).astype(np.float64)
        lights.append((ambient, diffuse, shine, -camera.turn[2] + 0 * at, 1.0))
    for k in np.flatnonzero(around.light_is_active):
        parts = [row[f"light_{part}"][k] for part in ("ambient", "diffuse", "specular")]
        if around.light_is_point[k]:
            away = row["light_xpos"][k] - at
            far = np.linalg.norm(away, axis=1, keepdims=True)
            constant, linear, square = around.attenuation[k].astype(np.float64)
            lights.append((*parts, away / far, 1 / (constant + linear * far + square * far**2)))
        else:
            lights.append((*parts, -row["light_xdir"][k] + 0 * at, 1.0))
    for ambient, diffuse, shine, towards, strength in lights:
        tilt = (normal_w * towards).sum(1, keepdims=True)
        half = towards - direction_w
        half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-9)
        cosine = np.clip((normal_w * half).sum(1, keepdims=True), 1e-6, 1.0)
        glint = np.where(tilt > 0, specular * cosine ** (128.0 * shininess), 0.0)
        total = total + strength * albedo * (ambient + diffuse * np.maximum(tilt, 0.0))
        total = total + strength * glint * shine
    return np.minimum(total, 1.0)


def _finish(scene, camera, t, rgb, near, label, solid) -> dict[str, NDArray]:
    opacity = 1.0 - t
    behind = sky_colours(scene.background, camera)
    if solid is not None:
        is_solid = solid["depth"] < scene.far
        behind = np.where(is_solid[..., None], solid["rgb"] / 255.0, behind)
        near = near + np.where(is_solid, t / solid["depth"].astype(np.float64), 0.0)
        shows = is_solid & (t > 0.5) & (label < 0)
        label = np.where(shows, solid["segmentation"], label)
        opacity = np.where(is_solid, 1.0, opacity)
    is_there = (opacity >= 0.5) & (near > 0)
    depth = np.where(is_there, opacity / np.where(near > 0, near, 1.0), scene.far)
    return {
        "rgb": rgb + t[..., None] * behind,
        "alpha": opacity,
        "depth": np.minimum(depth, scene.far),
        "segmentation": label,
    }


def sky_colours(table: NDArray, camera: Camera) -> NDArray:
    """Return what is behind everything, (height, width, 3)."""
    height, width = camera.size
    if len(table) == 1:
        return np.broadcast_to(table[0].astype(np.float64), (height, width, 3))
    u = (np.arange(width) + 0.5 - 0.5 * width) / camera.focal_px
    v = ((np.arange(height) + 0.5 - 0.5 * height) / camera.focal_px)[:, None]
    up = camera.turn[:, 2]
    high = (up[0] * u + up[1] * v + up[2]) / np.sqrt(u * u + v * v + 1)
    place = np.clip((0.5 * high + 0.5) * (len(table) - 1), 0, len(table) - 1.001)
    first = place.astype(int)
    part = (place - first)[..., None]
    return table[first] * (1 - part) + table[first + 1] * part
