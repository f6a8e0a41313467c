"""Measure how much a scene looks like views of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.sim.renderer import RenderSource
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import Raster
from maniple.splat.scene import Scene
from maniple.splat.views import Views


class Likeness(NamedTuple):
    """What is left between a scene and views of one camera."""

    psnr_db: float
    """Mean over views; more is better."""
    depth_error_mm: float
    """Median of all pixels that show something."""


def psnr(a: NDArray, b: NDArray) -> float:
    """Return the peak signal-to-noise ratio of pictures from 0 to 1, decibels."""
    error = float(np.mean((np.asarray(a, np.float64) - b) ** 2))
    return 10 * np.log10(1 / max(error, 1e-12))


def likeness(scene: Scene, source: RenderSource, views: Views) -> dict[str, Likeness]:
    """Compare a scene with views, camera by camera."""
    raster = Raster(CompiledScene(scene, source.model), source, layer_bytes=0)
    colours: dict[int, list[float]] = {}
    depths: dict[int, list[NDArray]] = {}
    size = views.rgb.shape[1:3]
    for k in range(len(views)):
        camera = int(views.cameras[k])
        out = {
            (camera, "rgb"): np.empty((1, *size, 3), np.uint8),
            (camera, "depth"): np.empty((1, *size), np.float32),
        }
        raster.render([int(views.rows[k])], [camera], ("rgb", "depth"), out)
        colours.setdefault(camera, []).append(psnr(out[camera, "rgb"][0] / 255, views.rgb[k]))
        there = views.segmentation[k] >= 0
        miss = np.abs(out[camera, "depth"][0] - views.depth[k])[there]
        depths.setdefault(camera, []).append(miss)
    raster.close()
    return {
        source.model.camera(camera).name: Likeness(
            float(np.mean(values)), 1e3 * _median(np.concatenate(depths[camera]))
        )
        for camera, values in colours.items()
    }


def _median(values: NDArray) -> float:
    return float(np.median(values)) if len(values) else 0.0
