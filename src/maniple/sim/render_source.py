"""Give renderers the rows that they draw: of a simulation, or of one MjData."""

from __future__ import annotations

import copy

import mujoco

from maniple.sim.paint import Paint
from maniple.sim.simulation import Simulation


class SimulationSource:
    """The rows of a simulation, each with its randomised fields and in its episode's colours."""

    def __init__(self, sim: Simulation, is_randomised: bool) -> None:
        self.sim = sim
        self.model = sim.model
        self.paint = Paint(sim.model)
        self.is_randomised = is_randomised
        self._data: mujoco.MjData | None = None
        # Colours are written into a copy: the simulated model stays as it is.
        self._coloured = copy.copy(sim.model) if self.paint else sim.model

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

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model = model
        self._data = data

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return the model and its data."""
        return self.model, self._data
