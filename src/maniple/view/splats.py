"""Gaussian splats in the page's scene, a node for each body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.splat.compiled import CompiledScene
from maniple.splat.raster import Raster
from maniple.splat.reference import colours_of
from maniple.splat.structs import ROW_FIELDS

if TYPE_CHECKING:
    from maniple.sim.renderer import RenderSource
    from maniple.splat.scene import Scene


class Splats:
    """The clouds of a scene, which follow the bodies that they are bound to."""

    def __init__(self, page_scene: Any, scene: Scene, source: RenderSource) -> None:
        """Add the nodes; `source` has a row with the lights that they are seen in."""
        self._compiled = CompiledScene(scene, source.model)
        self._nodes: list[tuple[int, Any]] = []
        self.gaussians = 0
        for number, group in enumerate(self._compiled.bound):
            factor = group.factors
            node = page_scene.add_gaussian_splats(
                f"/splats/{number}",
                centers=group.cloud.means,
                covariances=(factor @ factor.transpose(0, 2, 1)).astype(np.float32),
                rgbs=np.clip(self._colours(group, source), 0, 1).astype(np.float32),
                opacities=group.cloud.opacities[:, None],
            )
            self._nodes.append((group.body, node))
            self.gaussians += len(group.cloud)

    def move(self, xpos: NDArray, xquat: NDArray, offset: NDArray | float = 0.0) -> None:
        """Put every cloud where its body is: positions (bodies, 3), quaternions (bodies, 4)."""
        for body, node in self._nodes:
            node.position = xpos[body] + offset
            node.wxyz = xquat[body]

    def remove(self) -> None:
        """Take the nodes out of the scene."""
        for _, node in self._nodes:
            node.remove()
        self._nodes = []

    def _colours(self, group: Any, source: RenderSource) -> NDArray:
        """Colours as the first camera sees them: the page has neither harmonics nor lights."""
        fields = {name: source.field(name) for name in ROW_FIELDS}
        row = {name: array[0] if has else array for name, (array, has) in fields.items()}
        raster = Raster(self._compiled, source, layer_bytes=0)
        return colours_of(self._compiled, group, row, raster.camera(row, 0, (64, 64)))[0]


def look_from(server: Any, position: NDArray, back: NDArray, distance: float = 0.4) -> None:
    """Put visitors behind a camera, looking at what it looks at."""
    eye, goal = position + distance * back, position - 0.5 * back
    for camera in (server.initial_camera, *(c.camera for c in server.get_clients().values())):
        camera.position, camera.look_at = tuple(eye.tolist()), tuple(goal.tolist())
    server.initial_camera.up = (0.0, 0.0, 1.0)
