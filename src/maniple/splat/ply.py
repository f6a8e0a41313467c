"""Read and write clouds as the PLY files of 3D Gaussian Splatting."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.splat.cloud import COEFFICIENTS, BadCloud, Cloud, make_cloud

MAX_HEADER = 1 << 16
TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "<i2", "int16": "<i2",
    "ushort": "<u2", "uint16": "<u2", "int": "<i4", "int32": "<i4", "uint": "<u4", "uint32": "<u4",
    "float": "<f4", "float32": "<f4", "double": "<f8", "float64": "<f8",
}  # fmt: skip
PLAIN = ("x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity")
AXES = ("scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3")


class Header(NamedTuple):
    """What the first lines of a PLY file say."""

    count: int
    dtype: np.dtype
    mode: str
    size: int
    """Bytes before the data."""
    elements: tuple[str, ...]


def read_ply(path: Path) -> Cloud:
    """Read a cloud, or raise BadCloud."""
    data = path.read_bytes()
    header = read_header(data, str(path))
    need = header.count * header.dtype.itemsize
    if len(data) - header.size < need:
        raise BadCloud(
            f"{path} is cut off: {header.count} Gaussians need {need} bytes after the header, "
            f"there are {len(data) - header.size}."
        )
    rows = np.frombuffer(data, header.dtype, header.count, header.size)
    names = header.dtype.names or ()
    missing = [name for name in (*PLAIN, *AXES) if name not in names]
    if missing:
        raise BadCloud(f"{path} is not a file of Gaussians: it lacks {', '.join(missing)}.")
    with np.errstate(over="ignore", invalid="ignore"):
        scales = np.exp(_columns(rows, AXES[:3]))
        opacities = 1.0 / (1.0 + np.exp(-rows["opacity"].astype(np.float64)))
    return make_cloud(
        _columns(rows, PLAIN[:3]),
        _columns(rows, AXES[3:]),
        scales,
        opacities,
        _harmonics(rows, names, str(path)),
        rows["label"] if "label" in names else None,
        header.mode,
        str(path),
    )


def read_header(data: bytes, origin: str) -> Header:
    """Read the header of a PLY file, or raise BadCloud."""
    end = data.find(b"end_header", 0, MAX_HEADER)
    # Some programs end lines of the header as Windows does.
    last = next((e for e in (b"end_header\n", b"end_header\r\n") if data.startswith(e, end)), b"")
    if not data.startswith(b"ply") or end < 0 or not last:
        raise BadCloud(f"{origin} is not a PLY file: it has no header that begins with 'ply'.")
    lines = data[:end].decode("latin-1").split("\n")
    mode, count, fields, elements = "default", -1, [], []
    is_binary = False
    for line in lines[1:]:
        words = line.split()
        if words[:1] == ["format"]:
            is_binary = words[1:2] == ["binary_little_endian"]
        elif words[:1] == ["comment"]:
            mode = _mode(words[1:], mode, origin)
        elif words[:1] == ["element"] and len(words) == 3:
            elements.append(words[1])
            if words[1] == "vertex":
                count = _whole(words[2], origin)
        elif words[:1] == ["property"] and elements == ["vertex"]:
            if len(words) != 3 or words[1] not in TYPES or words[2] in (f[0] for f in fields):
                raise BadCloud(f"{origin} has a property that is not understood: {line[:60]!r}.")
            fields.append((words[2], TYPES[words[1]]))
    if not is_binary:
        raise BadCloud(f"{origin} is not in the format binary_little_endian.")
    if elements[:1] != ["vertex"] or not fields:
        raise BadCloud(f"{origin} does not begin with the element 'vertex'.")
    return Header(count, np.dtype(fields), mode, end + len(last), tuple(elements))


def write_ply(cloud: Cloud, path: Path) -> None:
    """Write a cloud, without normals."""
    count, coefficients = cloud.sh.shape[:2]
    rest = [f"f_rest_{k}" for k in range(3 * (coefficients - 1))]
    names = [*PLAIN[:6], *rest, "opacity", *AXES]
    fields: list[tuple[str, str]] = [(name, "<f4") for name in names]
    if cloud.labels is not None:
        fields.append(("label", "<u2"))
    rows = np.empty(count, np.dtype(fields))
    _put(rows, PLAIN[:3], cloud.means)
    _put(rows, PLAIN[3:6], cloud.sh[:, 0])
    # The harmonics of red stand before those of green.
    _put(rows, rest, cloud.sh[:, 1:].transpose(0, 2, 1).reshape(count, -1))
    opaque = np.clip(cloud.opacities.astype(np.float64), 1e-6, 1 - 1e-6)
    rows["opacity"] = np.log(opaque / (1 - opaque))
    _put(rows, AXES[:3], np.log(np.maximum(cloud.scales, 1e-12)))
    _put(rows, AXES[3:], cloud.quats_wxyz)
    if cloud.labels is not None:
        rows["label"] = cloud.labels
    lines = ["ply", "format binary_little_endian 1.0", f"comment SplatRenderMode: {cloud.mode}",
             f"element vertex {count}"]  # fmt: skip
    lines += [f"property {'float' if kind == '<f4' else 'ushort'} {name}" for name, kind in fields]
    path.write_bytes(("\n".join([*lines, "end_header"]) + "\n").encode() + rows.tobytes())


def _mode(words: list[str], before: str, origin: str) -> str:
    """Read the comments of Brush and Postshot about how to draw."""
    if words[:1] == ["SplatRenderMode:"] and len(words) > 1:
        known = {"default": "default", "mip": "mip", "antialiased": "antialiased",
                 "2dgs": "default"}  # fmt: skip
        if words[1] not in known:
            raise BadCloud(f"{origin} asks for the render mode {words[1]!r}, which is not known.")
        return known[words[1]]
    if words[:1] == ["antialiased"]:
        return "antialiased" if words[1:2] == ["1"] else "default"
    return before


def _whole(word: str, origin: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) < 12):
        raise BadCloud(f"{origin} says that it holds {word[:20]!r} Gaussians.")
    return int(word)


def _harmonics(rows: NDArray, names: tuple[str, ...], origin: str) -> NDArray[np.float32]:
    rest = [name for name in names if name.startswith("f_rest_")]
    coefficients = len(rest) // 3 + 1
    if coefficients not in COEFFICIENTS or len(rest) % 3:
        raise BadCloud(f"{origin} has {len(rest)} f_rest properties; 0, 9, 24 or 45 are known.")
    wanted = [f"f_rest_{k}" for k in range(len(rest))]
    if set(wanted) != set(rest):
        raise BadCloud(f"{origin} does not number its f_rest properties from 0.")
    sh = np.empty((len(rows), coefficients, 3), np.float32)
    sh[:, 0] = _columns(rows, PLAIN[3:6])
    if rest:
        sh[:, 1:] = _columns(rows, wanted).reshape(len(rows), 3, -1).transpose(0, 2, 1)
    return sh


def _columns(rows: NDArray, names: tuple[str, ...] | list[str]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.stack([rows[name].astype(np.float64) for name in names], 1)


def _put(rows: NDArray, names: tuple[str, ...] | list[str], values: NDArray) -> None:
    for k, name in enumerate(names):
        rows[name] = values[:, k]
