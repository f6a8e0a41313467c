"""Draw the pictures that are part of an observation, only where something moved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import StepArrays
from maniple.envs.config import EnvConfig
from maniple.envs.meanings import PICTURES
from maniple.sim.derived_images import body_mask, points_w
from maniple.sim.render_source import SimulationSource
from maniple.sim.renderer import DRAWN_KINDS, Renderer, camera_index, make_renderer

NEAR_M, FAR_M = 0.0, 100.0
DERIVED_FROM = {"mask": "segmentation", "point_cloud": "depth"}


class Cameras:
    """The cameras of a group, drawn for all rows in one call of the renderer."""

    def __init__(
        self, source: SimulationSource, config: EnvConfig, names: Mapping[str, str] | None = None
    ) -> None:
        """Look through the cameras of a config; `names` are other names of pictures."""
        self._source = source
        self._config = config
        self._cameras = {name: camera_index(source.model, name) for name in config.cameras}
        needed = {DERIVED_FROM.get(kind, kind) for kind in config.image_kinds}
        self._drawn = [kind for kind in DRAWN_KINDS if kind in needed]
        self._renderer: Renderer | None = None
        self.stale = np.ones(source.sim.rows, np.bool_)
        """Rows that have moved since they were drawn."""
        plain = [(camera, kind) for camera in config.cameras for kind in config.image_kinds]
        self._names = {
            (camera, kind): (names or {}).get(f"{camera}_{kind}", f"{camera}_{kind}")
            for camera, kind in plain
        }
        self.layout = Layout(
            {name: picture_spec(kind, config.image_size) for (_, kind), name in self._names.items()}
        )

    def draw(self, out: StepArrays, previous: StepArrays | None) -> None:
        """Fill every row's pictures; what has not moved is copied from the step before.

        Without `previous` the pictures of what has not moved are in `out` already.
        """
        still = ~self.stale
        if previous is not None and previous is not out and still.any():
            for name in self.layout:
                out.obs[name][still] = previous.obs[name][still]
        rows = np.flatnonzero(self.stale)
        if len(rows):
            self._draw(rows, out)
        self.stale[:] = False

    def _draw(self, rows: NDArray[np.intp], out: StepArrays) -> None:
        """Draw what the renderer draws, straight into `out` where it is of all rows."""
        config, is_all = self._config, len(rows) == len(self.stale)
        pictures: dict[tuple[int, str], NDArray] = {}
        for name, camera in self._cameras.items():
            for kind in dict.fromkeys((*config.image_kinds, *self._drawn)):
                if is_all and kind in config.image_kinds:
                    pictures[camera, kind] = out.obs[self._names[name, kind]]
                else:
                    spec = picture_spec(kind, config.image_size)
                    pictures[camera, kind] = np.empty((len(rows), *spec.shape), spec.dtype)
        cameras = list(self._cameras.values())
        self._get_renderer().render(rows.tolist(), cameras, self._drawn, pictures)
        self._derive(rows, pictures)
        for name, camera in self._cameras.items() if not is_all else ():
            for kind in config.image_kinds:
                out.obs[self._names[name, kind]][rows] = pictures[camera, kind]

    def _derive(self, rows: NDArray[np.intp], pictures: dict[tuple[int, str], NDArray]) -> None:
        kinds = self._config.image_kinds
        for camera in self._cameras.values() if "mask" in kinds else ():
            geoms = pictures[camera, "segmentation"]
            pictures[camera, "mask"][...] = body_mask(self._source.model, geoms)
        for k, row in enumerate(rows.tolist()) if "point_cloud" in kinds else ():
            model, data = self._source.load(row)
            for camera in self._cameras.values():
                depth = pictures[camera, "depth"][k]
                pictures[camera, "point_cloud"][k] = points_w(model, data, camera, depth)

    def close(self) -> None:
        """Free the drawing memory."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _get_renderer(self) -> Renderer:
        if self._renderer is None:
            config = self._config
            self._renderer = make_renderer(
                config.renderer, self._source, config.image_size, config.quality
            )
        return self._renderer


def picture_spec(kind: str, size: tuple[int, int]) -> ArraySpec:
    """Return shape, type and bounds of one kind of picture."""
    means = PICTURES[kind]
    if kind == "rgb":
        return ArraySpec((*size, 3), np.dtype(np.uint8), 0, 255, kind, means)
    if kind == "depth":
        return ArraySpec(size, np.dtype(np.float32), NEAR_M, FAR_M, kind, means)
    if kind == "point_cloud":
        return ArraySpec((*size, 3), np.dtype(np.float32), -FAR_M, FAR_M, kind, means)
    return ArraySpec(size, np.dtype(np.int32), -1, np.iinfo(np.int32).max, kind, means)
