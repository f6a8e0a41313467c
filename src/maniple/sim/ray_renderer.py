"""Draw without any GL library: cast a ray per pixel and shade what it hits."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.renderer import Pictures, RenderSource

SKY_TOP, SKY_BOTTOM = np.array([0.72, 0.80, 0.88]), np.array([0.93, 0.94, 0.95])
# From where a scene is lit, as seen from what is lit; slightly from the side, so that the
# faces of a box differ.
LIGHT = np.array([0.35, -0.45, 0.82])
AMBIENT, DIFFUSE = 0.50, 0.55


class RayRenderer:
    """Draws no textures and no shadows, but primitives at their true places."""

    name: ClassVar[str] = "rays"
    wants_one_process: ClassVar[bool] = False

    def __init__(self, source: RenderSource, size: tuple[int, int], quality: str) -> None:
        self._source = source

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`."""
        for k, row in enumerate(rows):
            model, data = self._source.load(row)
            for camera in cameras:
                _draw(model, data, camera, {kind: out[camera, kind][k] for kind in kinds})

    def close(self) -> None:
        """Nothing is held."""


def _draw(
    model: mujoco.MjModel, data: mujoco.MjData, camera: int, into: dict[str, NDArray]
) -> None:
    height, width = next(iter(into.values())).shape[:2]
    pos, turn, fovy = _viewpoint(model, data, camera)
    towards = _pixel_rays(width, height, fovy)
    rays = towards @ turn.T
    geoms, distances, normals = _cast(model, data, pos, rays)
    if "rgb" in into:
        shaded = np.clip(_shade(model, geoms, normals, rays), 0.0, 1.0)
        into["rgb"][...] = (shaded * 255).astype(np.uint8).reshape(height, width, 3)
    if "depth" in into:
        far = model.vis.map.zfar * model.stat.extent
        # Along the optical axis, as GL measures it, not along the ray.
        depth = np.where(geoms >= 0, distances * -towards[:, 2], far)
        into["depth"][...] = depth.reshape(height, width)
    if "segmentation" in into:
        into["segmentation"][...] = geoms.reshape(height, width)


def _cast(
    model: mujoco.MjModel, data: mujoco.MjData, pos: NDArray, rays: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    count = len(rays)
    geoms, distances = np.full(count, -1, np.int32), np.full(count, -1.0)
    normals = np.zeros(3 * count)
    mujoco.mj_multiRay(
        model,
        data,
        np.ascontiguousarray(pos),
        np.ascontiguousarray(rays).ravel(),
        np.array([1, 1, 1, 0, 0, 0], np.uint8),
        True,
        -1,
        geoms,
        distances,
        normals,
        count,
        1e6,
    )
    return geoms, distances, normals.reshape(count, 3)


def _shade(model: mujoco.MjModel, geoms: NDArray, normals: NDArray, rays: NDArray) -> NDArray:
    up = np.clip(rays[:, 2:3], 0.0, 1.0)
    picture = SKY_BOTTOM + (SKY_TOP - SKY_BOTTOM) * up
    hit = geoms >= 0
    colours = _geom_colours(model)[geoms[hit], :3]
    light = LIGHT / np.linalg.norm(LIGHT)
    # A plane seen from below has its normal away from us: light the side that we see.
    facing = np.where((normals[hit] * rays[hit]).sum(1) > 0, -1.0, 1.0)
    lit = np.clip((normals[hit] @ light) * facing, 0.0, 1.0)
    picture[hit] = colours * (AMBIENT + DIFFUSE * lit)[:, None]
    return picture


def _geom_colours(model: mujoco.MjModel) -> NDArray:
    colours = model.geom_rgba.copy()
    plain = np.all(colours == 0.5, axis=1) | (colours[:, 3] == 0)
    for geom in np.flatnonzero((model.geom_matid >= 0) & plain):
        colours[geom] = model.mat_rgba[model.geom_matid[geom]]
    return colours


def _viewpoint(
    model: mujoco.MjModel, data: mujoco.MjData, camera: int
) -> tuple[NDArray, NDArray, float]:
    if camera >= 0:
        turn = data.cam_xmat[camera].reshape(3, 3)
        return data.cam_xpos[camera], turn, float(model.cam_fovy[camera])
    back = np.array([0.6, -0.6, 0.5])
    back = back / np.linalg.norm(back)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    pos = model.stat.center + back * model.stat.extent * 1.5
    return pos, np.stack([right, np.cross(back, right), back], 1), float(model.vis.global_.fovy)


@functools.lru_cache(maxsize=16)
def _pixel_rays(width: int, height: int, fovy_deg: float) -> NDArray:
    """Unit directions of the pixels in the camera's frame, which looks along -z."""
    top = np.tan(np.radians(fovy_deg) / 2)
    y = top * (1 - (np.arange(height) + 0.5) * 2 / height)
    x = top * width / height * ((np.arange(width) + 0.5) * 2 / width - 1)
    rays = np.stack([*np.meshgrid(x, y), np.full((height, width), -1.0)], -1).reshape(-1, 3)
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)
