"""Write the observations of a step into its arrays, and look for NaN on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.block import SMALL, Block
from maniple.core.quick import all_finite, clip, compiled


class Packer:
    """Copies values into some arrays of a block, in one go.

    Small arrays of real numbers are clipped to their bounds and searched for NaN; everything
    else, such as pictures, is only copied.
    """

    def __init__(self, block: Block, names: Iterable[str], is_strict: bool = False) -> None:
        """Write to the arrays of these names.

        Args:
            block: Whose arrays are written.
            names: Which of them, in the order in which their values will come.
            is_strict: Whether values must have their array's very type, bounds being left alone.
        """
        names = list(names)
        self._targets = [block[name] for name in names]
        self._specs = [block.layout[name] for name in names]
        self._bounds = [_bounds_of(block, name, is_strict) for name in names]
        self._numbers = _together(block, names, self._bounds)
        self._compiled = None
        if compiled is not None:
            flat = [b and (b[0].ravel(), b[1].ravel()) for b in self._bounds]
            with contextlib.suppress(ValueError):  # half precision, for example
                self._compiled = compiled.Packer(self._targets, flat, is_strict)

    def write(self, values: list[NDArray]) -> bool:
        """Write all rows, (rows, ...) each; return whether every number is finite."""
        if self._compiled is not None and (answer := self._compiled.write(values)) is not None:
            return answer
        for target, value in zip(self._targets, values, strict=True):
            target[...] = value
        is_finite = True
        for numbers, low, high in self._numbers:
            clip(numbers, low, high, numbers)
            is_finite &= all_finite(numbers)
        return is_finite

    def write_row(self, values: list[Any], row: int) -> bool | None:
        """Write one row; return whether every number is finite, or None if a value does not fit."""
        if self._compiled is not None and (answer := self._compiled.write(values, row)) is not None:
            return answer
        if not all(spec.fits(value) for spec, value in zip(self._specs, values, strict=True)):
            return None
        is_finite = True
        for target, value, bounds in zip(self._targets, values, self._bounds, strict=True):
            target[row] = value
            if bounds is not None:
                is_finite &= all_finite(value)
        return is_finite


def _together(
    block: Block, names: list[str], bounds: list[tuple[NDArray, NDArray] | None]
) -> list[tuple[NDArray, NDArray, NDArray]]:
    """Return arrays of numbers with their bounds: where all of a type are written, as one."""
    bounded = {name: b for name, b in zip(names, bounds, strict=True) if b is not None}
    found = []
    for dtype, packed in block.packed.items():
        mine = [name for name in bounded if block.layout[name].dtype == dtype]
        if mine and sum(block.layout[name].size for name in mine) == packed.shape[1]:
            # In the order of the columns, which is the layout's.
            inside = [bounded[name] for name in block.layout if name in mine]
            low, high = (np.concatenate([b[k].ravel() for b in inside]) for k in range(2))
            found.append((packed, low, high))
        else:
            found += [(block[name], *bounded[name]) for name in mine]
    return found


def _bounds_of(block: Block, name: str, is_strict: bool) -> tuple[NDArray, NDArray] | None:
    spec = block.layout[name]
    if spec.dtype.kind != "f" or spec.nbytes > SMALL:
        return None
    if is_strict:
        return np.full(spec.shape, -np.inf, spec.dtype), np.full(spec.shape, np.inf, spec.dtype)
    return spec.bounds()
