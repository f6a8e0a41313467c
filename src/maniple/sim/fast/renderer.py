"""Draw primitives on the processor alone: many rows, many cameras, every kind in one pass."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from maniple.core.errors import BadConfig
from maniple.sim.fast.reference import draw_reference
from maniple.sim.fast.scene import SceneArrays, free_view
from maniple.sim.fast.structs import ROW_FIELDS, Order, Output, Rows, Scene
from maniple.sim.fast.support import why_not
from maniple.sim.kernel.caller import Copies, KernelCaller, declare_layers, point_output
from maniple.sim.kernel.library import load_library
from maniple.sim.renderer import Pictures, RenderSource

LIBRARY = "maniple.sim.fast._raycast"
LAYER_BYTES = 64 << 20
"""So much is kept of what does not move, per renderer."""
TOLERANCE = 8
"""Where neighbours differ by more grey levels, 'fine' casts 2 x 2 rays; -1: in every pixel."""


class FastRenderer(KernelCaller):
    """Draws boxes, balls, capsules, cylinders, ellipsoids and planes as MuJoCo lights them.

    Without its compiled part it draws the same pictures in numpy, slowly.
    """

    name: ClassVar[str] = "fast"
    wants_one_process: ClassVar[bool] = False

    def __init__(
        self,
        source: RenderSource,
        size: tuple[int, int],
        quality: str,
        layer_bytes: int = LAYER_BYTES,
    ) -> None:
        reason = why_not(source.model)
        if reason is not None:
            raise BadConfig(
                f"renderer is 'fast', but {reason}. Leave it at 'auto', or choose 'mujoco'."
            )
        self._source = source
        self._is_fine = quality == "fine"
        self._tolerance = TOLERANCE
        self._scene = SceneArrays(source.model)
        self._free_view = free_view(source.model)
        self._layer_bytes = layer_bytes
        super().__init__(compiled_library(), Rows(), layer_bytes)
        self._struct = self._scene.struct()

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`."""
        if not len(rows) or not len(cameras):
            return
        fields = {name: self._source.field(name) for name in ROW_FIELDS}
        if self._library is None:
            for k, row in enumerate(rows):
                now = {name: f[row] if has else f for name, (f, has) in fields.items()}
                for camera in cameras:
                    into = {kind: out[camera, kind][k] for kind in kinds}
                    draw_reference(self._scene, now, self._free_view, camera, into, self._is_fine)
            return
        self._point_at(fields)
        self._call(rows, cameras, kinds, out)

    def _call(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        numbers = np.ascontiguousarray(rows, np.int32)
        outputs = (Output * len(cameras))()
        copies: Copies = []
        height, width = out[cameras[0], kinds[0]].shape[1:3]
        for output, camera in zip(outputs, cameras, strict=True):
            output.camera = camera
            output.is_still = int(camera < 0 or self._scene.cameras_still[camera])
            point_output(output, kinds, [out[camera, kind] for kind in kinds], copies)
        order = Order(
            rows=len(numbers),
            cameras=len(cameras),
            width=width,
            height=height,
            is_fine=int(self._is_fine),
            tolerance=self._tolerance,
            has_shadows=int(self._is_fine and self._scene.has_shadows),
            threads=self._source.threads,
            lanes=self.lanes,
            row=numbers.ctypes.data,
            output=ctypes.addressof(outputs),
            free_view=self._free_view,
        )
        order.keeps_placed = int(self._has_room(order, sum(one.is_still for one in outputs)))
        self._draw(self._struct, order, copies)

    def _has_room(self, order: Order, still_cameras: int) -> bool:
        """Whether what is placed can be kept for all rows, not only for those of this order."""
        pictures = len(self._known["geom_xpos"]) * still_cameras
        pixel_bytes = 12 if order.has_shadows else 8
        return pictures * pixel_bytes * order.width * order.height < self._layer_bytes / 4


def compiled_library() -> ctypes.CDLL | None:
    """Return the compiled renderer, or None where it was not built."""
    library = load_library(LIBRARY)
    if library is not None and library.render.argtypes is None:
        pointer = ctypes.POINTER
        library.render.argtypes = [pointer(Scene), pointer(Rows), pointer(Order), ctypes.c_void_p]
        declare_layers(library)
    return library
