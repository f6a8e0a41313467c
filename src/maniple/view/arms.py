"""The arms of all rows in the page's scene, moved with few messages."""

# MuJoCo's bindings have no complete stubs.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.support import geom_colours
from maniple.view.meshes import Part, parts_of

GAP = 1.15
"""Distance of rows, in parts of the size of one."""


class Arms:
    """One batch of meshes for each body and colour; poses of all rows go out together.

    Args:
        scene: The scene of a viser server.
        model: What every row looks like.
        rows: How many there are.
    """

    def __init__(self, scene: Any, model: mujoco.MjModel, rows: int) -> None:
        self._scene, self.model = scene, model
        self.parts = parts_of(model)
        self.offsets = _grid(model, self.parts, rows)
        """Where the world of each row begins (rows, 3), metres."""
        self._shown: list[int] = []
        self._handles: list[tuple[Part, Any]] = []
        self._floors: list[Any] = []
        self._add_floors()

    def show_rows(self, rows: Sequence[int]) -> None:
        """Choose the rows that are to be seen."""
        if list(rows) == self._shown:
            return
        for _, handle in self._handles:
            handle.remove()
        self._handles, self._shown = [], list(rows)
        if not self._shown:
            return
        nowhere = np.zeros((len(self._shown), 3), np.float32)
        upright = np.tile(np.array([1, 0, 0, 0], np.float32), (len(self._shown), 1))
        for number, part in enumerate(self.parts):
            if part.is_floor:
                continue
            alpha = float(part.rgba[3])
            handle = self._scene.add_batched_meshes_simple(
                f"/arms/{number}",
                part.triangles.corners,
                part.triangles.faces,
                batched_wxyzs=upright,
                batched_positions=nowhere,
                batched_colors=_bytes(part.rgba),
                opacity=None if alpha > 0.99 else alpha,
                side="double",
                lod="off",
                cast_shadow=False,
                receive_shadow=False,
            )
            self._handles.append((part, handle))

    def move(self, states: Sequence[dict[str, Any]]) -> None:
        """Put every body of the shown rows where it is in their states."""
        if not self._shown:
            return
        places = np.stack([states[row]["xpos"] for row in self._shown]).astype(np.float32)
        turns = np.stack([states[row]["xquat"] for row in self._shown]).astype(np.float32)
        places += self.offsets[self._shown, None]
        for part, handle in self._handles:
            handle.batched_positions = np.ascontiguousarray(places[:, part.body])
            handle.batched_wxyzs = np.ascontiguousarray(turns[:, part.body])

    def paint(self, models: Sequence[mujoco.MjModel]) -> None:
        """Show the colours that each row has of its own."""
        if not self._shown:
            return
        colours = np.stack([geom_colours(models[row]) for row in self._shown])
        for part, handle in self._handles:
            handle.batched_colors = _bytes(colours[:, part.geoms[0]])

    def _add_floors(self) -> None:
        """Show ground that never ends once, under all rows."""
        reach = np.abs(self.offsets).max() + 3.0
        data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, data)
        for number, part in enumerate(p for p in self.parts if p.is_floor):
            corners = part.triangles.corners.copy()
            # Wide enough for the grid, and not so wide that it hides the horizon.
            corners[:, :2] = np.clip(corners[:, :2], -reach, reach)
            far = np.abs(corners[:, :2]).max()
            corners[:, :2] *= reach / max(far, 1e-6)
            place = data.xpos[part.body] + self.offsets.mean(0) - [0, 0, 0.002]
            floor = self._scene.add_mesh_simple(
                f"/floor/{number}", corners, part.triangles.faces,
                color=tuple(_bytes(part.rgba).tolist()), side="double", position=place,
                wxyz=data.xquat[part.body], cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
            self._floors.append(floor)


def _grid(model: mujoco.MjModel, parts: list[Part], rows: int) -> NDArray[np.float32]:
    """Lay rows out in a square, the first one at the origin."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mats = data.xmat.reshape(-1, 3, 3)
    points = [
        p.triangles.corners @ mats[p.body].T + data.xpos[p.body] for p in parts if not p.is_floor
    ]
    size = np.ptp(np.concatenate(points)[:, :2], axis=0) if points else np.ones(2)
    columns = ceil(sqrt(rows))
    k = np.arange(rows)
    apart = GAP * np.maximum(size, 0.3)
    offsets = np.stack([-(k // columns) * apart[0], (k % columns) * apart[1], 0 * k], 1)
    return offsets.astype(np.float32)


def _bytes(rgba: NDArray) -> NDArray[np.uint8]:
    return np.clip(np.round(255 * np.asarray(rgba)[..., :3]), 0, 255).astype(np.uint8)
