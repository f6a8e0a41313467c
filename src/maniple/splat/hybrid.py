"""Draw splats and simulated geoms in one picture, each in front of what is behind it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.support import still_bodies
from maniple.sim.renderer import DRAWN_KINDS, Pictures, RenderSource, make_renderer
from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import COMPILED, Raster
from maniple.splat.scene import Part, Scene, find_body
from maniple.splat.store import scene_for

HIDDEN_GROUP = 5
_DTYPES = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32}


class HybridRenderer:
    """Splats of the bodies that a scene covers, geoms of all others.

    Of a model's own scene only what never moves is drawn as splats: a captured room with a
    simulated robot in it.
    """

    name: ClassVar[str] = "hybrid"
    wants_one_process: ClassVar[bool] = False

    def __init__(self, source: RenderSource, size: tuple[int, int], quality: str) -> None:
        scene = scene_for(source)
        if not getattr(source, "scene", None):
            scene = still_part(scene, source.model)
        self.scene = CompiledScene(scene, source.model)
        self.raster = Raster(self.scene, source)
        covered = np.unique([group.body for group in self.scene.bound])
        geoms = np.isin(source.model.geom_bodyid, covered)
        if self.raster.variant in COMPILED:
            self.scene.drop_clouds()
        self._solid = make_renderer("auto", UncoveredSource(source, geoms), size, quality)

    @property
    def variant(self) -> str:
        """Which implementations draw."""
        return f"{self.raster.variant} over {self._solid.name}"

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`."""
        if not len(rows) or not len(cameras) or not len(kinds):
            return
        size = out[cameras[0], kinds[0]].shape[1:3]
        solid: dict[tuple[int, str], NDArray] = {}
        for camera in cameras:
            for kind in DRAWN_KINDS:
                shape = (len(rows), *size, 3) if kind == "rgb" else (len(rows), *size)
                solid[camera, kind] = np.empty(shape, _DTYPES[kind])
        self._solid.render(rows, cameras, DRAWN_KINDS, solid)
        for camera in cameras:
            # Renderers differ in the last digit of what is infinitely far.
            depth = solid[camera, "depth"]
            depth[depth > 0.999 * self.scene.far] = np.inf
        self.raster.render(rows, cameras, kinds, out, solid)

    def close(self) -> None:
        """Free the drawing memory."""
        self.raster.close()
        self._solid.close()


class UncoveredSource:
    """The rows of another source, without the geoms that are drawn as splats."""

    def __init__(self, source: RenderSource, hidden: NDArray[np.bool_]) -> None:
        self._source = source
        self._hidden = hidden
        self.model = self._without(source.model)
        self.threads = source.threads

    def _without(self, model: mujoco.MjModel) -> mujoco.MjModel:
        shown = copy.copy(model)
        shown.geom_group[self._hidden] = HIDDEN_GROUP
        return shown

    def field(self, name: str) -> tuple[NDArray, bool]:
        """Return an array, and whether its first axis is the row."""
        return self._source.field(name)

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return a row's model and state."""
        model, data = self._source.load(row)
        return (self.model if model is self._source.model else self._without(model)), data


def still_part(scene: Scene, model: mujoco.MjModel) -> Scene:
    """Return what of a scene never moves."""
    still = still_bodies(model)
    parts: list[Part] = []
    for part in scene.parts:
        owner_is_still = np.array([still[find_body(model, body)] for body, _ in part.owners])
        keep = np.flatnonzero(owner_is_still[part.owner_numbers])
        if len(keep):
            parts.append(replace(part, cloud=part.cloud.take(keep)))
    return replace(scene, parts=tuple(parts))
