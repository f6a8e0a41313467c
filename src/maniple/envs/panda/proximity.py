"""Sensor volumes: tell whether a part of a body is inside of a box in the scene."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.rotation import mat_rotate
from maniple.sim.state import State


class ProximitySensor(NamedTuple):
    """A box that is fixed to a body (metres, the body's frame)."""

    body: str
    centre: tuple[float, float, float]
    half: tuple[float, float, float]

    def has_point(self, s: State, point_w: NDArray) -> NDArray[np.bool_]:
        """Whether points (rows, 3) are inside."""
        way = point_w - s.pos(self.body)
        local = mat_rotate(np.swapaxes(s.mat(self.body), -1, -2), way) - self.centre
        inside = np.abs(local) <= self.half
        return inside[:, 0] & inside[:, 1] & inside[:, 2]

    def centre_w(self, s: State) -> NDArray:
        """The middle in the world, (rows, 3)."""
        return s.pos(self.body) + mat_rotate(s.mat(self.body), np.asarray(self.centre)[None])

    def detects(self, s: State, body: str) -> NDArray[np.bool_]:
        """Whether any part of a body is inside, as RLBench's proximity sensors see it.

        Of every shape the point nearest to the volume's middle is looked at.
        """
        found = np.zeros(s.rows, np.bool_)
        middle = self.centre_w(s)
        for geom in geoms_of(s.model, body):
            found |= self.has_point(s, _nearest(s, geom, middle))
        return found


def geoms_of(model: mujoco.MjModel, body: str) -> list[int]:
    """Numbers of the shapes of a body that can be touched."""
    owner = model.body(body).id
    return [
        g for g in range(model.ngeom) if model.geom_bodyid[g] == owner and model.geom_contype[g]
    ]


def half_sizes(model: mujoco.MjModel, geom: int) -> NDArray:
    """Half the sides of a shape's bounding box, in its own frame."""
    return model.geom_aabb[geom, 3:].copy()


def _nearest(s: State, geom: int, point_w: NDArray) -> NDArray:
    mat = s.bind("geom_xmat")[:, geom].reshape(-1, 3, 3)
    centre = s.bind("geom_xpos")[:, geom]
    local = mat_rotate(np.swapaxes(mat, -1, -2), point_w - centre)
    half = half_sizes(s.model, geom)
    return centre + mat_rotate(mat, np.clip(local, -half, half))
