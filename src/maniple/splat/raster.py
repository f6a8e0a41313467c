"""Call the rasteriser: many rows, many cameras, every kind of picture in one pass."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.scene import free_view
from maniple.sim.kernel.caller import DTYPES, Copies, KernelCaller, declare_layers, point_output
from maniple.sim.kernel.library import load_library
from maniple.sim.kernel.structs import Field
from maniple.sim.renderer import Pictures, RenderSource
from maniple.splat.compiled import CompiledScene
from maniple.splat.structs import (
    KINDS,
    ROW_FIELDS,
    CloudStruct,
    Descent,
    Order,
    Output,
    Rows,
    Training,
)  # fmt: skip

if TYPE_CHECKING:
    from maniple.splat.reference import Camera

LIBRARY = "maniple.splat._raster"
LAYER_BYTES = 256 << 20
"""So much is kept of what does not move, per renderer."""
BYTES_PER_PIXEL = 1600
"""What a kept layer takes, about. Where the still cameras of a call would need more than there is,
all are drawn like cameras that move: a layer that had to be made anew each time costs far more."""
COMPILED = ("avx2", "baseline")
"""Variants that need nothing of a scene but its compiled arrays."""
STAGES = ("project", "sort", "blend", "finish")
_LIGHTS = ("light_ambient", "light_diffuse", "light_specular", "cam_fovy")

Solid = Mapping[tuple[int, str], NDArray]
"""Pictures of another renderer, by camera and kind."""


class Raster(KernelCaller):
    """Draws a compiled scene in the places that a source's rows have now."""

    def __init__(
        self, scene: CompiledScene, source: RenderSource, layer_bytes: int = LAYER_BYTES
    ) -> None:
        """Get ready.

        Args:
            scene: What is drawn.
            source: The rows.
            layer_bytes: How much is kept of what does not move; 0: nothing.
        """
        self.scene = scene
        self._source = source
        self.free_view = free_view(scene.model)
        self._layer_bytes = layer_bytes
        # A camera that is put elsewhere in every row would need a layer for each.
        moved = (source.field(name)[1] for name in ("cam_pos", "cam_quat"))
        self._cameras_still = scene.surroundings.cameras_still & (not any(moved))
        super().__init__(compiled_library(), Rows(), layer_bytes)
        self._struct = scene.struct()

    def render(
        self,
        rows: Sequence[int],
        cameras: Sequence[int],
        kinds: Sequence[str],
        out: Pictures,
        solid: Solid | None = None,
        nanoseconds: NDArray[np.int64] | None = None,
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`.

        Args:
            rows: Which.
            cameras: Numbers; -1 is the free view.
            kinds: rgb, depth, segmentation, or colour (floats: red, green, blue, alpha).
            out: Where they go.
            solid: rgb, depth and segmentation of another renderer, which splats hide and are
                hidden by.
            nanoseconds: (4,) to which the time of each of STAGES is added.
        """
        if not len(rows) or not len(cameras) or not len(kinds):
            return
        fields = {name: self._source.field(name) for name in ROW_FIELDS}
        tints = self._tints(rows)
        if self._library is None:
            self._draw_slowly(rows, cameras, kinds, out, fields, tints, solid)
            return
        self._point_at(fields)
        is_plain = np.ones(len(rows), np.uint8)
        self._rows.tint = Field(None, 0)
        if tints is not None:
            self._rows.tint = Field.of(tints, True)
            changed = (tints != np.repeat([1, 0], 3).astype(np.float32)).any(2)
            is_plain = (~(changed[:, self.scene.label_is_still].any(1))).astype(np.uint8)[rows]
        lights_vary = any(fields[name][1] for name in _LIGHTS)
        can_keep = not lights_vary and not (solid is not None and self.scene.has_moving)
        self._call(rows, cameras, kinds, out, solid, is_plain, can_keep, nanoseconds)

    def _tints(self, rows: Sequence[int]) -> NDArray[np.float32] | None:
        rgba, has_rows = self._source.field("geom_rgba")
        return self.scene.tints(rgba) if has_rows else None

    def _call(
        self, rows, cameras, kinds, out, solid, is_plain, can_keep, nanoseconds
    ) -> None:  # fmt: skip
        numbers = np.ascontiguousarray(rows, np.int32)
        outputs = (Output * len(cameras))()
        copies: Copies = []
        keep_alive: list[NDArray] = []
        height, width = out[cameras[0], kinds[0]].shape[1:3]
        still = [camera < 0 or bool(self._cameras_still[camera]) for camera in cameras]
        # Not by rows, nor by what is free now: a row has the same bits whatever else is drawn.
        can_keep &= sum(still) * width * height * BYTES_PER_PIXEL <= self._layer_bytes
        for output, camera, stands in zip(outputs, cameras, still, strict=True):
            output.camera = camera
            output.is_still = int(stands and can_keep)
            point_output(output, kinds, [out[camera, kind] for kind in kinds], copies)
            for kind in KINDS[:3] if solid else ():
                array = np.ascontiguousarray(solid[camera, kind], DTYPES[kind])
                keep_alive.append(array)
                setattr(output, f"solid_{kind}", array.ctypes.data)
                setattr(output, f"solid_{kind}_stride", array.strides[0])
        order = self._order(numbers, outputs, is_plain, width, height, nanoseconds)
        self._draw(self._struct, order, copies)

    def _order(self, numbers, outputs, is_plain, width, height, nanoseconds) -> Order:
        return Order(
            rows=len(numbers),
            cameras=len(outputs),
            width=width,
            height=height,
            threads=self._source.threads,
            lanes=self.lanes,
            row=numbers.ctypes.data,
            is_plain=is_plain.ctypes.data,
            output=ctypes.addressof(outputs),
            free_view=self.free_view,
            nanoseconds=None if nanoseconds is None else nanoseconds.ctypes.data,
        )

    def _draw_slowly(self, rows, cameras, kinds, out, fields, tints, solid) -> None:
        from maniple.splat.reference import draw_reference

        for k, row in enumerate(rows):
            now = {name: array[row] if has else array for name, (array, has) in fields.items()}
            for camera in cameras:
                size = out[camera, kinds[0]].shape[1:3]
                below = None
                if solid is not None:
                    below = {kind: solid[camera, kind][k] for kind in KINDS[:3]}
                drawn = draw_reference(
                    self.scene, now, self.camera(now, camera, size),
                    None if tints is None else tints[row], below,
                )  # fmt: skip
                for kind in kinds:
                    out[camera, kind][k] = finished(drawn, kind)

    def camera(self, row: Mapping[str, NDArray], camera: int, size: tuple[int, int]) -> Camera:
        """Return one of a row's cameras, or the free view for -1."""
        from maniple.splat.reference import camera_of

        if camera < 0:
            view = self.free_view
            return camera_of(np.array(view.pos), np.array(view.mat), float(view.fovy), size)
        fovy = float(row["cam_fovy"][camera])
        return camera_of(row["cam_xpos"][camera], row["cam_xmat"][camera], fovy, size)


def finished(drawn: Mapping[str, NDArray], kind: str) -> NDArray:
    """Turn what the reference draws into one kind of picture."""
    if kind == "rgb":
        return (np.clip(drawn["rgb"], 0, 1) * 255 + 0.5).astype(np.uint8)
    if kind == "colour":
        return np.concatenate([drawn["rgb"], drawn["alpha"][..., None]], -1)
    return drawn[kind]


def compiled_library() -> Any:
    """Return the compiled rasteriser, or None where it was not built."""
    library = load_library(LIBRARY)
    if library is not None and library.render.argtypes is None:
        pointer, scene = ctypes.POINTER, [ctypes.POINTER(CloudStruct), ctypes.POINTER(Rows)]
        library.render.argtypes = [*scene, pointer(Order), ctypes.c_void_p]
        library.train.argtypes = [*scene, pointer(Order), pointer(Training)]
        library.descend.argtypes = [pointer(Descent)]
        library.descend.restype = None
        declare_layers(library)
    return library
