"""Rasterise splats with gsplat on a graphics card: the same pictures as the processor draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.optional import require
from maniple.sim.renderer import Pictures, RenderSource
from maniple.splat.cloud import MODES
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import Raster, finished
from maniple.splat.reference import Camera, colours_of, sky_colours
from maniple.splat.structs import ROW_FIELDS


class CudaRaster:
    """Draws a compiled scene with gsplat; one process draws all rows."""

    variant = "cuda"

    def __init__(self, scene: CompiledScene, source: RenderSource) -> None:
        modes = {group.cloud.mode for group in scene.bound}
        if len(modes) > 1:
            raise BadConfig(
                f"gsplat draws a scene in one mode, and this one has {', '.join(sorted(modes))}. "
                "Hide the graphics card (CUDA_VISIBLE_DEVICES=) to draw it on the processor."
            )
        self.scene = scene
        self._source = source
        self._torch = require("torch")
        self._rasterization = require("gsplat").rasterization
        # Segmentation is of single splats, which gsplat does not give: the processor draws it.
        self._plain = Raster(scene, source)

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`."""
        if "segmentation" in kinds:
            self._plain.render(rows, cameras, ("segmentation",), out)
        mine = [kind for kind in kinds if kind != "segmentation"]
        if not mine or not len(rows) or not len(cameras):
            return
        fields = {name: self._source.field(name) for name in ROW_FIELDS}
        rgba, has_rows = self._source.field("geom_rgba")
        tints = self.scene.tints(rgba) if has_rows else None
        size = out[cameras[0], mine[0]].shape[1:3]
        for k, row in enumerate(rows):
            now = {name: array[row] if has else array for name, (array, has) in fields.items()}
            for camera in cameras:
                view = self._plain.camera(now, camera, size)
                drawn = self._draw(now, view, None if tints is None else tints[row])
                for kind in mine:
                    out[camera, kind][k] = finished(drawn, kind)

    def _draw(
        self, row: Mapping[str, NDArray], camera: Camera, tint: NDArray | None
    ) -> dict[str, NDArray]:
        arguments = rasterization_arguments(self.scene, row, camera, tint)
        on_card = {
            name: self._torch.as_tensor(value, dtype=self._torch.float32, device="cuda")
            if isinstance(value, np.ndarray)
            else value
            for name, value in arguments.items()
        }
        pictures, alphas, _ = self._rasterization(**on_card)
        picture, alpha = pictures[0].cpu().numpy(), alphas[0, ..., 0].cpu().numpy()
        behind = sky_colours(self.scene.background, camera)
        far = self.scene.far
        return {
            "rgb": picture[..., :3] + (1.0 - alpha[..., None]) * behind,
            "alpha": alpha,
            "depth": np.where(alpha >= 0.5, np.minimum(picture[..., 3], far), far),
        }

    def close(self) -> None:
        """Free the kept layers."""
        self._plain.close()


def rasterization_arguments(
    scene: CompiledScene, row: Mapping[str, NDArray], camera: Camera, tint: NDArray | None = None
) -> dict[str, Any]:
    """Return what gsplat.rasterization is called with, as numpy arrays.

    Covariances are in the world's frame. Colours are computed in the frames of the links and with
    the simulated light, so that no harmonics have to be turned.
    """
    means, covars, opacities, colours = [], [], [], []
    for group in scene.bound:
        turn, pos = row["xmat"][group.body].reshape(3, 3), row["xpos"][group.body]
        factor = turn @ group.factors
        means.append(group.cloud.means @ turn.T + pos)
        covars.append(factor @ factor.transpose(0, 2, 1))
        rgb, faces = colours_of(scene, group, row, camera, tint)
        opacities.append(group.cloud.opacities * faces)
        colours.append(rgb)
    height, width = camera.size
    eps2d, is_antialiased = MODES[scene.bound[0].cloud.mode]
    view, focal = np.eye(4), camera.focal_px
    view[:3, :3], view[:3, 3] = camera.turn, -camera.turn @ camera.pos
    lens = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0.0, 0.0, 1.0]])
    return {
        "means": np.concatenate(means),
        "quats": None,
        "scales": None,
        "covars": np.concatenate(covars),
        "opacities": np.concatenate(opacities),
        "colors": np.concatenate(colours),
        "viewmats": view[None],
        "Ks": lens[None],
        "width": width,
        "height": height,
        "near_plane": scene.near,
        "far_plane": scene.far,
        "eps2d": eps2d,
        "packed": True,
        # Expected depth: the depth of a splat's middle, not of its plane.
        "render_mode": "RGB+ED",
        "rasterize_mode": "antialiased" if is_antialiased else "classic",
    }
