"""Give renderers the rows that they draw: of a simulation, or of one MjData."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.support import geom_colours
from maniple.sim.kinematics import PLACES
from maniple.sim.paint import Paint
from maniple.sim.simulation import Simulation


class SimulationSource:
    """The rows of a simulation, each with its randomised fields and in its episode's colours."""

    def __init__(self, sim: Simulation, is_randomised: bool, scene: str | None = None) -> None:
        """Give out the rows of a simulation; `scene` is a file of splats that they are drawn as."""
        self.sim = sim
        self.scene = scene
        self.model = sim.model
        self.paint = Paint(sim.model)
        self.is_randomised = is_randomised
        self._data: mujoco.MjData | None = None
        # Colours are written into a copy: the simulated model stays as it is.
        self._coloured = copy.copy(sim.model) if self.paint else sim.model
        self.threads = sim.batch.nthread
        self._plain_rgba = geom_colours(sim.model)

    def field(self, name: str) -> tuple[NDArray, bool]:
        """Return an array of MjData or MjModel, and whether it has a part for each row."""
        if name in PLACES:
            return self.sim.bind(name), True
        if name == "geom_rgba":
            return self._colours()
        own = self.sim.expanded(name)
        return (getattr(self.model, name), False) if own is None else (own, True)

    def _colours(self) -> tuple[NDArray[np.float32], bool]:
        own = self.sim.expanded("geom_rgba")
        if own is None and not self.paint:
            return self._plain_rgba, False
        if own is None:
            colours = np.repeat(self._plain_rgba[None], self.sim.rows, 0)
        else:
            colours = geom_colours(self.model, own)
        if self.paint:
            self.paint.apply_all(colours, self.sim.bind("userdata"))
        return colours, True

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return a row's own model and state; they are valid until the next call."""
        self._data = self.sim.data(row, self._data)
        model = self.sim.row_model(row) if self.is_randomised else self._coloured
        return self._painted(model, row), self._data

    def row_model(self, row: int) -> mujoco.MjModel:
        """Return a copy of a row's model, for people to keep."""
        return self._painted(self.sim.row_model(row), row)

    def _painted(self, model: mujoco.MjModel, row: int) -> mujoco.MjModel:
        if self.paint:
            self.paint.apply(model, self.sim.bind("userdata")[row])
        return model


class DataSource:
    """One MjData, as row 0."""

    def __init__(
        self, model: mujoco.MjModel, data: mujoco.MjData, scene: str | None = None
    ) -> None:
        """Give out one state; `scene` is a file of splats that it is drawn as."""
        self.model = model
        self.scene = scene
        self.threads = 1
        self._data = data

    def field(self, name: str) -> tuple[NDArray, bool]:
        """Return an array of the data or the model, and whether it has a part for each row."""
        if name in PLACES:
            return getattr(self._data, name)[None], True
        if name == "geom_rgba":
            return geom_colours(self.model), False
        return getattr(self.model, name), False

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return the model and its data."""
        return self.model, self._data
