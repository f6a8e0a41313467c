"""The structs of `rows.h` in Python: same fields, same order."""

from __future__ import annotations

import ctypes
from ctypes import c_double, c_int64, c_void_p

from numpy.typing import NDArray


class Field(ctypes.Structure):
    """One array that all rows share (stride 0), or that has a part for each row."""

    _fields_ = [("at", c_void_p), ("stride", c_int64)]

    @classmethod
    def of(cls, array: NDArray, is_per_row: bool) -> Field:
        """Point at an array; what is inside a row must be contiguous."""
        inside = array[0] if is_per_row and len(array) else array
        assert inside.flags.c_contiguous, "rows must be contiguous inside"
        return cls(array.ctypes.data, array.strides[0] if is_per_row else 0)


class FreeView(ctypes.Structure):
    """The view of camera -1."""

    _fields_ = [("pos", c_double * 3), ("mat", c_double * 9), ("fovy", c_double)]


def address(array: NDArray | None) -> int | None:
    """Return where an array is, or None."""
    return None if array is None else array.ctypes.data
