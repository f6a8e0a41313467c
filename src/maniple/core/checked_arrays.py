"""Read and write arrays in one npz file that nobody can hide code or gigabytes in."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from maniple.core import atomic
from maniple.core.checked_file import STATE_BYTES, BadFile, read_bytes
from maniple.core.errors import one_line

PLAIN_KINDS = "biuf"
"""Kinds of arrays that are read: truth values and numbers."""
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays of numbers, whole or not at all.

    Raises:
        OSError: The disk does not take it.
    """
    for name, array in arrays.items():
        assert array.dtype.kind in PLAIN_KINDS, name
    # In memory first: numpy's zip file complains twice where the disk is full.
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **{name: arrays[name] for name in arrays})
    atomic.write_bytes(path, file.getvalue())


def read_arrays(path: str | Path, most_bytes: int = STATE_BYTES) -> dict[str, NDArray]:
    """Read what `write_arrays` wrote; anything else is refused.

    Raises:
        BadFile: It is not such a file: compressed, of objects, torn, or larger than it may be.
    """
    data = read_bytes(path, most_bytes)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return {
                member.filename.removesuffix(".npy"): _array(file, member)
                for member in file.infolist()
            }
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, NotImplementedError) as error:
        raise BadFile(f"{path} is no file of arrays: {one_line(error)}.") from None


def _array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray:
    # A few compressed bytes can become gigabytes.
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        raise ValueError(f"{member.filename!r:.60} is compressed or encrypted")
    data = file.read(member)
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"{member.filename!r:.60} has the npy version {version}")
    shape, is_fortran, dtype = _HEADERS[version](stream)
    if dtype.kind not in PLAIN_KINDS or is_fortran or any(side < 0 for side in shape):
        raise ValueError(f"{member.filename!r:.60} holds {dtype}, which is not read")
    # Before any memory is taken: a header may say what it likes.
    if prod(shape) * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"{member.filename!r:.60} has another size than it says")
    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape).copy()
