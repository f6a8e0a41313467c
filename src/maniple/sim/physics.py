"""One simulation as people write it down: MuJoCo's model and data, with named access."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.named import Named
from maniple.sim.render_source import DataSource
from maniple.sim.renderer import Renderer, camera_index, make_renderer, render_still


class Physics:
    """One simulation as a task sees it: MuJoCo's model and data, and named access."""

    def __init__(
        self, model: mujoco.MjModel, renderer: str = "auto", scene: str | None = None
    ) -> None:
        self.model = model
        self.data = mujoco.MjData(model)
        self._renderer_name = renderer
        self._scene = scene
        self._renderer: Renderer | None = None

    @property
    def named(self) -> Named:
        """Arrays by name: `physics.named.data.site_xpos["tip"]`, as in dm_control."""
        return Named(self.model, self.data)

    def control(self) -> NDArray[np.float64]:
        """Return a copy of the actuators' commands."""
        return self.data.ctrl.copy()

    def time(self) -> float:
        """Return the simulated time (s)."""
        return self.data.time

    def timestep(self) -> float:
        """Return the time of a physics step (s)."""
        return self.model.opt.timestep

    def body(self, name: str) -> Any:
        """Return MuJoCo's named view of a body."""
        return self.data.body(name)

    def site(self, name: str) -> Any:
        """Return MuJoCo's named view of a site."""
        return self.data.site(name)

    def joint(self, name: str) -> Any:
        """Return MuJoCo's named view of a joint."""
        return self.data.joint(name)

    def sensor(self, name: str) -> Any:
        """Return MuJoCo's named view of a sensor."""
        return self.data.sensor(name)

    def render(
        self, height: int = 240, width: int = 320, camera_id: str | int = -1
    ) -> NDArray[np.uint8]:
        """Return a picture, (height, width, 3)."""
        if self._renderer is None:
            source, size = DataSource(self.model, self.data, self._scene), (height, width)
            self._renderer = make_renderer(self._renderer_name, source, size, "fine")
        camera = camera_id if camera_id == -1 else camera_index(self.model, camera_id)
        return render_still(self._renderer, 0, int(camera), width, height)

    def close(self) -> None:
        """Let go of the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
