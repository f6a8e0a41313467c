"""Photographs with poses, as splats are learned from them: transforms.json and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.checked_file import read_json_table
from maniple.core.errors import BadConfig, one_line
from maniple.splat.views import Views

LARGEST_SIDE = 400
"""Larger photographs are made smaller: fitting looks at every pixel many times."""
_MODEL = "<mujoco><worldbody><camera name='photo'/></worldbody></mujoco>"


class PhotoSource:
    """One row for each photograph, with its camera: the world has nothing else in it."""

    threads = 1
    scene: str | None = None

    def __init__(self, pos: NDArray, mat: NDArray, fovy_deg: float) -> None:
        self.model = mujoco.MjModel.from_xml_string(_MODEL)
        self.model.cam_fovy[:] = fovy_deg
        self._data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self._data)
        rows = len(pos)
        self._places = {
            "cam_xpos": np.ascontiguousarray(pos.reshape(rows, 1, 3)),
            "cam_xmat": np.ascontiguousarray(mat.reshape(rows, 1, 9)),
        }

    def field(self, name: str) -> tuple[NDArray, bool]:
        """Return an array, and whether its first axis is the row."""
        if name in self._places:
            return self._places[name], True
        return getattr(self._data if hasattr(self._data, name) else self.model, name), False

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return the empty world."""
        return self.model, self._data


def read_photos(path: Path) -> tuple[PhotoSource, Views]:
    """Read a transforms.json, with one lens for all photographs, and the photographs."""
    text = read_json_table(path)
    try:
        frames = text["frames"]
        poses = np.array([frame["transform_matrix"] for frame in frames], np.float64)
        if poses.shape[1:] != (4, 4) or not np.isfinite(poses).all():
            raise ValueError("a transform_matrix is 4 x 4 finite numbers")
        pictures = [_read_picture(path.parent, frame["file_path"]) for frame in frames]
    except KeyError as error:
        raise BadConfig(f"{path} is not a transforms.json: it has no {error}.") from None
    except (OSError, TypeError, ValueError, IndexError) as error:
        raise BadConfig(
            f"{path} is not a transforms.json with photographs: {one_line(error)}."
        ) from None
    height, width = pictures[0].shape[:2]
    if any(picture.shape != pictures[0].shape for picture in pictures):
        raise BadConfig(f"{path}: its photographs are not all of one size.")
    source = PhotoSource(poses[:, :3, 3], poses[:, :3, :3], _fovy_deg(text, width, height, path))
    rows, size = len(pictures), (len(pictures), height, width)
    return source, Views(
        np.arange(rows, dtype=np.int32),
        np.zeros(rows, np.int32),
        np.stack(pictures),
        np.zeros(size, np.float32),
        np.full(size, -1, np.int32),
    )


def _fovy_deg(text: dict[str, Any], width: int, height: int, path: Path) -> float:
    if "fl_x" in text and "w" in text:
        wide, focal = (_positive(text, name, path) for name in ("w", "fl_x"))
        across = 2 * np.arctan(0.5 * wide / focal)
    elif "camera_angle_x" in text:
        across = _positive(text, "camera_angle_x", path)
    else:
        raise BadConfig(f"{path} has neither camera_angle_x nor fl_x with w.")
    if not 0.01 < across < 3.1:
        raise BadConfig(f"{path}: its lens sees {np.degrees(across):.1f} degrees across.")
    return float(np.degrees(2 * np.arctan(np.tan(across / 2) * height / width)))


def _positive(text: dict[str, Any], name: str, path: Path) -> float:
    value = text[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        raise BadConfig(f"{path}: {name} is {str(value)[:60]!r}; it must be a number above 0.")
    return float(value)


def _read_picture(folder: Path, name: str) -> NDArray[np.float32]:
    path = folder / name
    path = path if path.suffix else path.with_suffix(".png")
    try:
        with av.open(str(path)) as file:
            rgb = next(file.decode(video=0)).to_ndarray(format="rgb24")
    except (av.error.FFmpegError, StopIteration) as error:
        raise ValueError(f"{path} is not a picture ({error})") from None
    every = -(-max(rgb.shape[:2]) // LARGEST_SIDE)
    height, width = rgb.shape[0] // every, rgb.shape[1] // every
    small = rgb[: height * every, : width * every].reshape(height, every, width, every, 3)
    return np.ascontiguousarray(small.mean((1, 3)) / 255, np.float32)
