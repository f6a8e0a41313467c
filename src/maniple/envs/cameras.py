"""Draw the pictures that are part of an observation, row by row, only where something moved."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import StepArrays
from maniple.envs.config import EnvConfig
from maniple.sim.camera import Painter, camera_index, painter
from maniple.sim.derived_images import body_mask, points_w
from maniple.sim.paint import Paint
from maniple.sim.simulation import Simulation

NEAR_M, FAR_M = 0.0, 100.0
PAINTED = ("rgb", "depth", "segmentation")


class Cameras:
    """The cameras of a group: several per step, one GL context for all of them."""

    def __init__(self, sim: Simulation, config: EnvConfig) -> None:
        self._sim = sim
        self._config = config
        self._cameras = {name: camera_index(sim.model, name) for name in config.cameras}
        self._painter: Painter | None = None
        self._data = mujoco.MjData(sim.model)
        self._model = sim.model
        self._paint = Paint(sim.model)
        self.stale = np.ones(sim.rows, np.bool_)
        """Rows that have moved since they were drawn."""
        self.layout = Layout(
            {
                f"{camera}_{kind}": _picture_spec(kind, config.image_size)
                for camera in config.cameras
                for kind in config.image_kinds
            }
        )

    def draw(self, out: StepArrays, previous: StepArrays, randomised: bool) -> None:
        """Fill every row's pictures; what has not moved is taken over from the step before."""
        names = list(self.layout)
        if previous is not out:
            still = ~self.stale
            for name in names if still.any() else ():
                out.obs[name][still] = previous.obs[name][still]
        for row in np.flatnonzero(self.stale).tolist():
            self._sim.data(row, self._data)
            if randomised:
                self._model = self._sim.row_model(row)
            if self._paint:
                self._paint.apply(self._model, self._sim.bind("userdata")[row])
            for camera, index in self._cameras.items():
                kinds = self._config.image_kinds
                into = {kind: out.obs[f"{camera}_{kind}"][row] for kind in kinds}
                self._draw_one(index, into)
        self.stale[:] = False

    def _draw_one(self, camera: int, into: dict[str, NDArray]) -> None:
        """Draw what a painter draws, then what is derived from it."""
        drawn = {kind: into[kind] for kind in into if kind in PAINTED}
        size = self._config.image_size
        if "mask" in into and "segmentation" not in drawn:
            drawn["segmentation"] = np.empty(size, np.int32)
        if "point_cloud" in into and "depth" not in drawn:
            drawn["depth"] = np.empty(size, np.float32)
        self._tool().draw(self._model, self._data, camera, drawn)
        if "mask" in into:
            into["mask"][...] = body_mask(self._model, drawn["segmentation"])
        if "point_cloud" in into:
            into["point_cloud"][...] = points_w(self._model, self._data, camera, drawn["depth"])

    def close(self) -> None:
        """Let go of the drawing memory."""
        if self._painter is not None:
            self._painter.close()
            self._painter = None

    def _tool(self) -> Painter:
        if self._painter is None:
            height, width = self._config.image_size
            self._painter = painter(self._sim.model, width, height, self._config.quality)
        return self._painter


def _picture_spec(kind: str, size: tuple[int, int]) -> ArraySpec:
    if kind == "rgb":
        return ArraySpec((*size, 3), np.dtype(np.uint8), 0, 255, image=kind)
    if kind == "depth":
        return ArraySpec(size, np.dtype(np.float32), NEAR_M, FAR_M, image=kind)
    if kind == "point_cloud":
        return ArraySpec((*size, 3), np.dtype(np.float32), -FAR_M, FAR_M, image=kind)
    return ArraySpec(size, np.dtype(np.int32), -1, np.iinfo(np.int32).max, image=kind)
