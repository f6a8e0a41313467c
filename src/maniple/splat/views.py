"""Views that splats are learned from: pictures with poses, smooth at the edges, without shadows."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.sim.fast.support import why_not
from maniple.sim.renderer import RenderSource, make_renderer

FINER = 2
"""Rays per pixel in each direction."""


class Views(NamedTuple):
    """Pictures of rows through cameras."""

    rows: NDArray[np.int32]
    cameras: NDArray[np.int32]
    rgb: NDArray[np.float32]
    """(views, height, width, 3), 0 to 1."""
    depth: NDArray[np.float32]
    segmentation: NDArray[np.int32]
    """Geom numbers; -1: nothing."""

    def __len__(self) -> int:
        return len(self.rows)


def draw_views(
    source: RenderSource, rows: int, size: tuple[int, int], renderer: str | None = None
) -> Views:
    """Draw every row through every camera of the model."""
    model = source.model
    if not model.ncam:
        raise BadConfig("The model has no cameras: splats are made of what cameras see.")
    name = renderer or ("fast" if why_not(model) is None else "mujoco")
    cameras = list(range(model.ncam))
    height, width = size
    fine = (height * FINER, width * FINER)
    drawn = make_renderer(name, source, fine, "lean")
    shapes = {"rgb": (*fine, 3), "depth": fine, "segmentation": fine}
    dtypes = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32}
    found: list[tuple[NDArray, NDArray, NDArray]] = []
    for row in range(rows):
        out = {
            (camera, kind): np.empty((1, *shape), dtypes[kind])
            for camera in cameras
            for kind, shape in shapes.items()
        }
        drawn.render([row], cameras, tuple(shapes), out)
        for camera in cameras:
            rgb = out[camera, "rgb"][0].reshape(height, FINER, width, FINER, 3)
            depth, geoms = out[camera, "depth"][0], out[camera, "segmentation"][0]
            found.append(
                ((rgb.mean((1, 3)) / 255).astype(np.float32), depth[::FINER, ::FINER],
                 geoms[::FINER, ::FINER])
            )  # fmt: skip
    drawn.close()
    numbers = np.repeat(np.arange(rows, dtype=np.int32), len(cameras))
    every = np.tile(np.array(cameras, np.int32), rows)
    columns = zip(*found, strict=True)
    rgb, depth, geoms = (np.ascontiguousarray(np.stack(arrays)) for arrays in columns)
    return Views(numbers, every, rgb, depth.astype(np.float32), geoms)


def sky_of(model: mujoco.MjModel, count: int = 32) -> NDArray[np.float32]:
    """Return the model's sky as colours by height, averaged around the horizon."""
    from maniple.sim.fast.reference import sky
    from maniple.sim.fast.scene import SceneArrays

    high = np.linspace(-1, 1, count)[:, None]
    around = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    flat = np.sqrt(np.maximum(1 - high**2, 1e-9))
    rays = np.stack(
        np.broadcast_arrays(flat * np.cos(around), flat * np.sin(around), high), -1
    ).reshape(-1, 3)
    colours = sky(SceneArrays(model), rays).reshape(count, len(around), 3).mean(1)
    return colours.astype(np.float32) if np.ptp(colours, 0).max() > 0 else colours[:1].astype("f4")
