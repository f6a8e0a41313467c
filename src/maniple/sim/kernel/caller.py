"""Call a compiled picture kernel: where arrays are, what it keeps, which variant it is."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.sim.kernel.library import best_width
from maniple.sim.kernel.structs import Field

DTYPES = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32, "colour": np.float32}

Copies = list[tuple[NDArray, NDArray]]
"""Arrays that a kernel cannot write into straight away, each with one that it can."""


class KernelCaller:
    """What a renderer needs to call a kernel that may not have been compiled."""

    def __init__(self, library: Any, rows: ctypes.Structure, layer_bytes: int) -> None:
        """Get ready.

        Args:
            library: The compiled kernel, or None.
            rows: A struct that has a Field for each array of the rows.
            layer_bytes: How much is kept of what does not move; 0: nothing.
        """
        self._library = library
        self._rows = rows
        self._known: dict[str, NDArray] = {}
        self._layers: int | None = None
        self.lanes = 0 if library is None else best_width(library)
        if library is not None and layer_bytes:
            self._layers = library.layers_new(layer_bytes)

    @property
    def variant(self) -> str:
        """Which implementation draws: 'avx2', 'baseline' or 'numpy'."""
        if self._library is None:
            return "numpy"
        return "avx2" if self.lanes == 8 else "baseline"

    @property
    def kept_bytes(self) -> int:
        """Memory that kept layers take."""
        return 0 if self._layers is None else self._library.layers_bytes(self._layers)

    def _point_at(self, fields: Mapping[str, tuple[NDArray, bool]]) -> None:
        for name, (array, has_rows) in fields.items():
            # Asking numpy where an array is takes longer than drawing a small picture.
            if self._known.get(name) is not array:
                self._known[name] = array
                setattr(self._rows, name, Field.of(array, has_rows))

    def _draw(self, struct: ctypes.Structure, order: Any, copies: Copies) -> None:
        pointers = (ctypes.byref(one) for one in (struct, self._rows, order))
        if self._library.render(*pointers, self._layers):
            raise MemoryError(f"There is no memory for pictures of {order.width} x {order.height}.")
        for array, copied in copies:
            array[...] = copied

    def close(self) -> None:
        """Free the kept layers."""
        if self._layers is not None:
            self._library.layers_free(self._layers)
            self._layers = None

    def __del__(self) -> None:
        if getattr(self, "_layers", None) is not None:
            self.close()


def point_output(
    output: Any, kinds: Sequence[str], arrays: Sequence[NDArray], copies: Copies
) -> None:
    """Tell a kernel where the pictures of one camera go, if need be through copies."""
    for kind, array in zip(kinds, arrays, strict=True):
        if not _is_ready(array, kind):
            copies.append((array, np.empty(array.shape, DTYPES[kind])))
            array = copies[-1][1]
        setattr(output, kind, array.ctypes.data)
        setattr(output, f"{kind}_stride", array.strides[0])


def declare_layers(library: Any) -> None:
    """Tell ctypes how the functions that keep layers are called."""
    library.layers_new.argtypes = [ctypes.c_int64]
    library.layers_new.restype = ctypes.c_void_p
    library.layers_free.argtypes = [ctypes.c_void_p]
    library.layers_free.restype = None
    library.layers_bytes.argtypes = [ctypes.c_void_p]
    library.layers_bytes.restype = ctypes.c_int64


def _is_ready(array: NDArray, kind: str) -> bool:
    has_type = array.dtype == DTYPES[kind] and array.flags.writeable
    return has_type and array[0].flags.c_contiguous and array.strides[0] >= 0
