"""Write and read arrays as openpi's policy servers send them: msgpack, never pickle."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from maniple.core.errors import BadConfig
from maniple.core.optional import require

MOST_BYTES = 64 * 1024 * 1024
"""Largest message that is read or written."""
_KINDS = "biuf"
"""Types of arrays that are read: truth values and numbers, nothing that holds objects."""
_NUMBERS = re.compile(rf"[<>|=]?[{_KINDS}][0-9]{{1,2}}")


def packed(message: Any) -> bytes:
    """Turn maps, lists, numbers, texts and arrays into bytes."""
    data = require("msgpack").packb(message, default=_described)
    if len(data) > MOST_BYTES:
        raise BadConfig(
            f"A message of {len(data):,} bytes is too large; {MOST_BYTES:,} is the most."
        )
    return data


def unpacked(data: bytes) -> Any:
    """Undo `packed`; anything that is neither plain nor an array of numbers is refused."""
    if len(data) > MOST_BYTES:
        raise BadConfig(
            f"A message of {len(data):,} bytes is too large; {MOST_BYTES:,} is the most."
        )
    limits = {"max_bin_len": MOST_BYTES, "max_str_len": MOST_BYTES, "max_array_len": 1_000_000,
              "max_map_len": 10_000, "max_ext_len": 0}  # fmt: skip
    try:
        return require("msgpack").unpackb(
            data, object_hook=_array, strict_map_key=False, raw=False, **limits
        )
    except BadConfig:
        raise
    except Exception as error:
        # msgpack raises many kinds; all mean the same to whoever reads.
        raise BadConfig(f"This is no message of a policy server: {error}.") from None


def _described(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind not in _KINDS:
            raise BadConfig(f"Arrays of {array.dtype} are not sent.")
        if isinstance(value, np.generic):
            return {b"__npgeneric__": True, b"data": array.item(), b"dtype": array.dtype.str}
        data = np.ascontiguousarray(array).tobytes()
        return {b"__ndarray__": True, b"data": data, b"dtype": array.dtype.str,
                b"shape": array.shape}  # fmt: skip
    raise BadConfig(f"{type(value).__name__} is not sent.")


def _array(found: dict) -> Any:
    if b"__ndarray__" in found:
        dtype = _number_type(found.get(b"dtype"))
        shape = tuple(int(side) for side in found.get(b"shape", ()))
        data = found.get(b"data", b"")
        if any(side < 0 for side in shape) or dtype.itemsize * math.prod(shape) != len(data):
            raise BadConfig(f"An array of shape {shape} and {dtype} came with {len(data)} bytes.")
        return np.frombuffer(data, dtype).reshape(shape).copy()
    if b"__npgeneric__" in found:
        return _number_type(found.get(b"dtype")).type(found[b"data"])
    return found


def _number_type(name: Any) -> np.dtype:
    text = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    # NumPy reads whole records and structures from a text; only plain numbers get that far.
    if not _NUMBERS.fullmatch(text):
        raise BadConfig(f"Arrays of {text[:40]!r} are not read: only numbers are.")
    try:
        return np.dtype(text)
    except TypeError:
        raise BadConfig(f"{text!r} is no type of numbers.") from None
