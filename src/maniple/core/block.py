"""Hold the arrays of a Layout for many rows, packed so that a copy is one copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import Layout

Allocate = Callable[[tuple[int, ...], np.dtype], NDArray]

SMALL = 4096  # bytes; anything larger (an image) gets an array of its own


class Block:
    """Named (rows, ...) arrays; the small ones of one type share one (rows, width) array.

    `arrays` are views: writing to `block["qpos"]` writes into the packed storage. Packing keeps
    the cost of copying independent of the number of names.
    """

    def __init__(self, layout: Layout, rows: int, allocate: Allocate = np.zeros) -> None:
        self.layout = layout
        self.rows = rows
        self.packed: dict[np.dtype, NDArray] = {}
        self.large: dict[str, NDArray] = {}
        self._columns: dict[str, tuple[np.dtype, int, int]] = {}
        widths: dict[np.dtype, int] = {}
        for name, spec in layout.items():
            if spec.nbytes > SMALL:
                self.large[name] = allocate((rows, *spec.shape), spec.dtype)
            else:
                start = widths.get(spec.dtype, 0)
                widths[spec.dtype] = start + spec.size
                self._columns[name] = (spec.dtype, start, start + spec.size)
        for dtype, width in widths.items():
            self.packed[dtype] = allocate((rows, width), dtype)
        self._plan = [self._place(name) for name in layout]
        self.arrays = self._views(list(self.packed.values()), self.large)

    def __getitem__(self, name: str) -> NDArray:
        return self.arrays[name]

    def copy(self) -> dict[str, NDArray]:
        """Return named arrays that later steps leave alone."""
        packed = [array.copy() for array in self.packed.values()]
        large = {name: array.copy() for name, array in self.large.items()} if self.large else {}
        return self._views(packed, large)

    def frozen(self) -> dict[str, NDArray]:
        """Return named read-only views of the live arrays."""
        views = dict(self.arrays)
        for name, array in views.items():
            views[name] = array[...]
            views[name].flags.writeable = False
        return views

    def take(self, row: int) -> dict[str, NDArray]:
        """Copy one row out."""
        return {name: np.array(array[row]) for name, array in self.arrays.items()}

    def put(self, row: int, values: dict[str, NDArray]) -> None:
        """Write one row back, as `take` gave it."""
        for name, value in values.items():
            self.arrays[name][row] = value

    def copy_from(self, other: Block, rows: int | slice | NDArray = slice(None)) -> None:
        """Copy rows of a block with the same layout."""
        for dtype, array in self.packed.items():
            array[rows] = other.packed[dtype][rows]
        for name, array in self.large.items():
            array[rows] = other.large[name][rows]

    def rows_of(self, rows: slice) -> Block:
        """Return a block over some of the rows, sharing memory."""
        part = object.__new__(Block)
        part.layout, part._columns, part._plan = self.layout, self._columns, self._plan
        part.packed = {dtype: array[rows] for dtype, array in self.packed.items()}
        part.large = {name: array[rows] for name, array in self.large.items()}
        part.rows = len(range(*rows.indices(self.rows)))
        part.arrays = part._views(list(part.packed.values()), part.large)
        return part

    def _place(self, name: str) -> tuple[str, int, Any, tuple[int, ...] | None]:
        """Where an array is: in which packed one, what of it, and its shape if that is not flat."""
        if name in self.large:
            return name, -1, None, None
        dtype, start, stop = self._columns[name]
        shape, kind = self.layout[name].shape, list(self.packed).index(dtype)
        at = (slice(None), start if shape == () else slice(start, stop))
        return name, kind, at, shape if len(shape) > 1 else None

    def _views(self, packed: list[NDArray], large: dict[str, NDArray]) -> dict[str, NDArray]:
        views = {}
        for name, kind, at, shape in self._plan:
            if kind < 0:
                views[name] = large[name]
            elif shape is None:
                views[name] = packed[kind][at]
            else:
                # Splitting the last axis of a strided array is always possible as a view.
                views[name] = packed[kind][at].reshape(-1, *shape, copy=False)
        return views
