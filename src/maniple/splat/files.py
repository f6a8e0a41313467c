"""Read a cloud from whatever kind of file it is in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maniple.core.errors import MissingExtra
from maniple.core.optional import require
from maniple.splat.cloud import BadCloud, Cloud, make_cloud
from maniple.splat.ply import MAX_HEADER, read_ply, write_ply
from maniple.splat.splat_file import read_splat, write_splat

READERS = {".spz": ("gsply", "read_spz"), ".sog": ("gsply.sog_reader", "sogread")}


def read_cloud(path: str | Path) -> Cloud:
    """Read a .ply or .splat file, and with the extra gsply compressed .ply, .spz and .sog."""
    path = Path(path)
    try:
        if not path.is_file():
            raise BadCloud(f"There is no file {path}.")
        if path.suffix == ".splat":
            return read_splat(path)
        if path.suffix in READERS or _is_compressed(path):
            return _read_compressed(path)
        return read_ply(path)
    except OSError as error:
        raise BadCloud(f"{path} cannot be read: {error.strerror}.") from None


def write_cloud(cloud: Cloud, path: str | Path) -> None:
    """Write a .splat file, or a .ply file."""
    path = Path(path)
    (write_splat if path.suffix == ".splat" else write_ply)(cloud, path)


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(MAX_HEADER)
    return start.startswith(b"ply") and b"\nelement chunk " in start


def _read_compressed(path: Path) -> Cloud:
    try:
        module, function = READERS.get(path.suffix, ("gsply", "plyread"))
        read = getattr(require(module), function)
    except MissingExtra as error:
        raise MissingExtra(f"{path} is compressed. {error}") from None
    try:
        data = read(str(path))
    except Exception as error:
        raise BadCloud(f"{path} cannot be read by gsply: {error}.") from None
    sh0 = np.asarray(data.sh0, np.float64).reshape(len(data.means), 1, 3)
    rest = np.asarray(data.shN, np.float64) if data.shN is not None else np.empty((0,))
    sh = np.concatenate([sh0, rest.reshape(len(sh0), -1, 3)], 1) if rest.size else sh0
    # gsply hands out what 3DGS stores: logarithms of scales, and opacities before the sigmoid.
    opacities = 1.0 / (1.0 + np.exp(-np.asarray(data.opacities, np.float64).reshape(-1)))
    scales = np.exp(np.asarray(data.scales, np.float64))
    return make_cloud(
        np.asarray(data.means), np.asarray(data.quats), scales, opacities, sh, origin=str(path)
    )
