"""Read and write clouds as .splat files: 32 bytes per Gaussian, colours without harmonics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from maniple.splat.cloud import C0, BadCloud, Cloud, make_cloud

ROW = np.dtype([("mean", "<f4", 3), ("scale", "<f4", 3), ("rgba", "u1", 4), ("quat", "u1", 4)])


def read_splat(path: Path) -> Cloud:
    """Read a cloud, or raise BadCloud."""
    data = path.read_bytes()
    if len(data) % ROW.itemsize:
        raise BadCloud(
            f"{path} has {len(data)} bytes; a .splat file has {ROW.itemsize} for each Gaussian."
        )
    rows = np.frombuffer(data, ROW)
    rgba = rows["rgba"].astype(np.float64) / 255.0
    quats = (rows["quat"].astype(np.float64) - 128.0) / 128.0
    sh = ((rgba[:, :3] - 0.5) / C0)[:, None]
    return make_cloud(rows["mean"], quats, rows["scale"], rgba[:, 3], sh, origin=str(path))


def write_splat(cloud: Cloud, path: Path) -> None:
    """Write a cloud; harmonics and labels are lost."""
    rows = np.empty(len(cloud), ROW)
    rows["mean"], rows["scale"] = cloud.means, cloud.scales
    rows["rgba"][:, :3] = np.rint(np.clip(cloud.rgb, 0, 1) * 255)
    rows["rgba"][:, 3] = np.rint(cloud.opacities * 255)
    rows["quat"] = np.clip(np.rint(cloud.quats_wxyz * 128 + 128), 0, 255)
    path.write_bytes(rows.tobytes())
