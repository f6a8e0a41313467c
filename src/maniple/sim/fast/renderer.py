"""Draw primitives on the processor alone: many rows, many cameras, every kind in one pass."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.sim.fast.reference import draw_reference
from maniple.sim.fast.scene import SceneArrays, free_view
from maniple.sim.fast.structs import ROW_FIELDS, Field, Order, Output, Rows, Scene
from maniple.sim.fast.support import why_not
from maniple.sim.kernel.library import best_width, load_library
from maniple.sim.renderer import DRAWN_KINDS, Pictures, RenderSource

LIBRARY = "maniple.sim.fast._raycast"
LAYER_BYTES = 64 << 20
"""So much is kept of what does not move, per renderer."""
TOLERANCE = 8
"""Where neighbours differ by more grey levels, 'fine' casts 2 x 2 rays; -1: in every pixel."""
_DTYPES = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32}


class FastRenderer:
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
        self._library = compiled_library()
        if self._library is not None:
            self._struct = self._scene.struct()
            self._rows = Rows()
            self._known: dict[str, NDArray] = {}
            self._lanes = best_width(self._library)
            self._layers = self._library.layers_new(layer_bytes) if layer_bytes else None

    @property
    def variant(self) -> str:
        """Which implementation draws: 'avx2', 'baseline' or 'numpy'."""
        if self._library is None:
            return "numpy"
        return "avx2" if self._lanes == 8 else "baseline"

    @property
    def kept_bytes(self) -> int:
        """Memory that kept layers take."""
        if self._library is None or self._layers is None:
            return 0
        return self._library.layers_bytes(self._layers)

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
        for name, (array, has_rows) in fields.items():
            # Asking numpy where an array is takes longer than drawing a small picture.
            if self._known.get(name) is not array:
                self._known[name] = array
                setattr(self._rows, name, Field.of(array, has_rows))
        self._call(rows, cameras, kinds, out)

    def _call(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        assert self._library is not None
        numbers = np.ascontiguousarray(rows, np.int32)
        outputs = (Output * len(cameras))()
        # Arrays that the kernel cannot write into straight away are written through a copy.
        copies: list[tuple[NDArray, NDArray]] = []
        height, width = out[cameras[0], kinds[0]].shape[1:3]
        for output, camera in zip(outputs, cameras, strict=True):
            output.camera = camera
            output.is_still = int(camera < 0 or self._scene.cameras_still[camera])
            for kind in kinds:
                array = out[camera, kind]
                if not _is_ready(array, kind):
                    copies.append((array, np.empty(array.shape, _DTYPES[kind])))
                    array = copies[-1][1]
                setattr(output, kind, array.ctypes.data)
                setattr(output, f"{kind}_stride", array.strides[0])
        order = Order(
            rows=len(numbers),
            cameras=len(cameras),
            width=width,
            height=height,
            is_fine=int(self._is_fine),
            tolerance=self._tolerance,
            has_shadows=int(self._is_fine and self._scene.has_shadows),
            threads=self._source.threads,
            lanes=self._lanes,
            row=numbers.ctypes.data,
            output=ctypes.addressof(outputs),
            free_view=self._free_view,
        )
        failed = self._library.render(
            ctypes.byref(self._struct), ctypes.byref(self._rows), ctypes.byref(order), self._layers
        )
        if failed:
            raise MemoryError(f"There is no memory for pictures of {width} x {height}.")
        for array, copied in copies:
            array[...] = copied

    def close(self) -> None:
        """Free the kept layers."""
        if self._library is not None and self._layers is not None:
            self._library.layers_free(self._layers)
            self._layers = None

    def __del__(self) -> None:
        if getattr(self, "_layers", None) is not None:
            self.close()


def compiled_library() -> ctypes.CDLL | None:
    """Return the compiled renderer, or None where it was not built."""
    library = load_library(LIBRARY)
    if library is not None and library.render.argtypes is None:
        pointer = ctypes.POINTER
        library.render.argtypes = [pointer(Scene), pointer(Rows), pointer(Order), ctypes.c_void_p]
        library.layers_new.argtypes = [ctypes.c_int64]
        library.layers_new.restype = ctypes.c_void_p
        library.layers_free.argtypes = [ctypes.c_void_p]
        library.layers_free.restype = None
        library.layers_bytes.argtypes = [ctypes.c_void_p]
        library.layers_bytes.restype = ctypes.c_int64
    return library


def _is_ready(array: NDArray, kind: str) -> bool:
    assert kind in DRAWN_KINDS
    has_type = array.dtype == _DTYPES[kind] and array.flags.writeable
    return has_type and array[0].flags.c_contiguous and array.strides[0] >= 0
