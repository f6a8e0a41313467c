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
        self._box = _box_of(model, self.parts)
        self.offsets = _grid(np.ptp(self._box, axis=0), rows)
        """Where the world of each row begins (rows, 3), metres."""
        self._shown: list[int] = []
        self._handles: list[tuple[Part, Any]] = []
        self._add_shared(rows)

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
            if part.is_shared:
                continue
            alpha = float(part.rgba[3])
            handle = self._scene.add_batched_meshes_simple(
                f"/arms/{number}",
                part.triangles.corners,
                part.triangles.faces,
                batched_wxyzs=upright,
                batched_positions=nowhere,
                batched_colors=_bytes(_linear(part.rgba)),
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
            handle.batched_colors = _bytes(_linear(colours[:, part.geoms[0]]))

    def edge(self, row: int) -> NDArray:
        """Return a place before the edge of a row, on the side that visitors see first (metres)."""
        low, high = self._box
        middle = (low + high) / 2
        return self.offsets[row] + np.array([middle[0], low[1] - 0.05, middle[2]])

    def around(self, rows: Sequence[int]) -> tuple[NDArray, float]:
        """Return the middle of rows, and how far away they fill the view (metres)."""
        low, high = self._box
        places = self.offsets[list(rows)]
        corners = np.concatenate([places + low, places + high])
        middle = (corners.min(0) + corners.max(0)) / 2
        return middle, 0.7 * float(np.linalg.norm(np.ptp(corners, axis=0)))

    def _add_shared(self, rows: int) -> None:
        """Show the ground once, under all rows; a wall only where it hides no other row."""
        data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, data)
        reach = float(np.ptp(self.offsets[:, :2], axis=0).max()) / 2 + 1.0
        for number, part in enumerate(p for p in self.parts if p.is_shared):
            corners, place = part.triangles.corners.copy(), data.xpos[part.body]
            if np.ptp(corners[:, 2]) > 0.5:
                if rows > 1:
                    continue
            elif rows > 1:
                middle = corners[:, :2].mean(0)
                wide = np.abs(corners[:, :2] - middle).max()
                corners[:, :2] = middle + (corners[:, :2] - middle) * (wide + reach) / wide
                place = place + self.offsets.max(0) / 2 + self.offsets.min(0) / 2
            self._scene.add_mesh_simple(
                f"/ground/{number}", corners, part.triangles.faces,
                color=tuple(_bytes(part.rgba).tolist()), side="double", position=place,
                wxyz=data.xquat[part.body], cast_shadow=False, receive_shadow=False,
            )  # fmt: skip


def _box_of(model: mujoco.MjModel, parts: list[Part]) -> NDArray[np.float64]:
    """Return the lowest and highest corner of what a row has of its own, (2, 3)."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mats = data.xmat.reshape(-1, 3, 3)
    own = [part for part in parts if not part.is_shared] or parts
    points = [p.triangles.corners @ mats[p.body].T + data.xpos[p.body] for p in own]
    every = np.concatenate(points) if points else np.zeros((1, 3))
    return np.stack([every.min(0), every.max(0)])


def _grid(size_m: NDArray, rows: int) -> NDArray[np.float32]:
    """Lay rows out in a square, the first one at the origin."""
    columns = ceil(sqrt(rows))
    k = np.arange(rows)
    apart = np.maximum(GAP * size_m, size_m + 0.12)
    offsets = np.stack([-(k // columns) * apart[0], (k % columns) * apart[1], 0 * k], 1)
    return offsets.astype(np.float32)


def _linear(rgba: NDArray) -> NDArray:
    """Turn colours of a screen into light: the page does so for meshes, but not for batches."""
    rgb = np.asarray(rgba, np.float64)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def _bytes(rgba: NDArray) -> NDArray[np.uint8]:
    return np.clip(np.round(255 * np.asarray(rgba)[..., :3]), 0, 255).astype(np.uint8)
