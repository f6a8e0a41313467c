"""Write what a step has seen into its arrays, within bounds, and notice NaN on the way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.block import SMALL, Block
from maniple.core.quick import all_finite, compiled


class Packer:
    """Copies values into some arrays of a block, in one go.

    Small arrays of real numbers are cut to their bounds and looked through for NaN; everything
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
        self._bounds = [_bounds_of(block, name, is_strict) for name in names]
        self._is_strict = is_strict
        self._compiled = None
        if compiled is not None:
            flat = [b and (b[0].ravel(), b[1].ravel()) for b in self._bounds]
            with contextlib.suppress(ValueError):  # half precision, for example
                self._compiled = compiled.Packer(self._targets, flat, is_strict)

    def write(self, values: list[NDArray]) -> bool:
        """Write all rows, (rows, ...) each; tell whether every number is finite."""
        if self._compiled is not None and (answer := self._compiled.write(values)) is not None:
            return answer
        is_finite = True
        for target, value, bounds in zip(self._targets, values, self._bounds, strict=True):
            target[...] = value
            if bounds is not None:
                np.clip(target, *bounds, out=target)
                is_finite &= all_finite(target)
        return is_finite

    def write_row(self, values: list[Any], row: int) -> bool | None:
        """Write one row; tell whether every number is finite, or None if a value does not fit."""
        if self._compiled is not None and (answer := self._compiled.write(values, row)) is not None:
            return answer
        is_finite = True
        for target, value, bounds in zip(self._targets, values, self._bounds, strict=True):
            is_array = type(value) is np.ndarray
            if not is_array or value.dtype != target.dtype or value.shape != target.shape[1:]:
                return None
            target[row] = value
            if bounds is not None:
                is_finite &= all_finite(value)
        return is_finite


def _bounds_of(block: Block, name: str, is_strict: bool) -> tuple[NDArray, NDArray] | None:
    spec = block.layout[name]
    if spec.dtype.kind != "f" or spec.nbytes > SMALL:
        return None
    if is_strict:
        return np.full(spec.shape, -np.inf, spec.dtype), np.full(spec.shape, np.inf, spec.dtype)
    return spec.bounds()
