"""A scene: which clouds there are, and which bodies they follow."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import yaml
from numpy.typing import NDArray

from maniple.core.checked_file import read_yaml_table
from maniple.core.errors import BadConfig, closest
from maniple.splat.cloud import Cloud, multiply_quats, turns
from maniple.splat.files import read_cloud, write_cloud

FORMAT = "splatscene/1"
WORLD = "world"
SUFFIXES = (".yaml", ".yml")
MAX_YAML_BYTES = 4 << 20
PART_KEYS = ("file", "body", "labels", "pos", "quat_wxyz", "scale", "gain", "lit", "two_sided")
SCENE_KEYS = ("format", "clouds", "background")

Geom = tuple[str, int]
"""A body's name, and which of its geoms; -1: none of them."""

IN_PLACE = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), 1.0, (1.0, 1.0, 1.0))
"""Position, turn, scale and gain of a cloud that is used as it is."""


@dataclass(frozen=True)
class Part:
    """A cloud and the bodies that its Gaussians follow."""

    cloud: Cloud
    owners: tuple[Geom, ...] = ((WORLD, -1),)
    """What the labels of the cloud stand for; one entry where it has none."""
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quat_wxyz: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    scale: float = 1.0
    """From the cloud's frame to the body's: scaled, turned, then shifted (metres)."""
    gain: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Red, green and blue are multiplied by these."""
    is_lit: bool = False
    """Whether colours are those of the material, on which the simulated lights shine."""
    is_two_sided: bool = True
    """Whether discs are seen from behind too; their front is where the third axis points."""

    @property
    def owner_numbers(self) -> NDArray[np.int32]:
        """Which of the owners each Gaussian follows; where there is one, all follow it."""
        if self.cloud.labels is None or len(self.owners) == 1:
            return np.zeros(len(self.cloud), np.int32)
        return self.cloud.labels

    def placed(self) -> Cloud:
        """Return the cloud in the frame of its bodies."""
        if (self.pos, self.quat_wxyz, self.scale, self.gain) == IN_PLACE:
            return self.cloud
        cloud, turn = self.cloud, turns(np.array(self.quat_wxyz))
        rgb = cloud.sh.astype(np.float64) * self.gain
        # A colour is 0.5 plus harmonics: the gain is of the sum.
        rgb[:, 0] += (np.array(self.gain) - 1.0) * 0.5 / 0.28209479177387814
        return Cloud(
            (self.scale * cloud.means @ turn.T + self.pos).astype(np.float32),
            multiply_quats(np.array(self.quat_wxyz), cloud.quats_wxyz).astype(np.float32),
            (self.scale * cloud.scales).astype(np.float32),
            cloud.opacities,
            rgb.astype(np.float32),
            cloud.labels,
            cloud.mode,
        )


@dataclass(frozen=True)
class Scene:
    """All clouds of a scene, and what is behind them."""

    parts: tuple[Part, ...]
    background: NDArray[np.float32] = field(default_factory=lambda: np.zeros((1, 3), np.float32))
    """(k, 3): colours of the sky from straight down to straight up; one row: the same all over."""

    def __len__(self) -> int:
        return sum(len(part.cloud) for part in self.parts)


def read_scene(path: str | Path) -> Scene:
    """Read a scene file, or raise BadConfig."""
    path = Path(path)
    if not path.is_file():
        raise BadConfig(f"There is no scene file {path}.")
    text = read_yaml_table(path, MAX_YAML_BYTES)
    if text.get("format") != FORMAT:
        raise BadConfig(f"{path} is not a scene file: it has no line 'format: {FORMAT}'.")
    _check_keys(text, SCENE_KEYS, str(path))
    clouds = text.get("clouds")
    if not isinstance(clouds, list) or not clouds:
        raise BadConfig(f"{path} names no clouds.")
    parts = tuple(_part(entry, path, k) for k, entry in enumerate(clouds))
    return Scene(parts, _background(text.get("background", [0, 0, 0]), str(path)))


def check_target(path: Path, capture: Path | None = None) -> None:
    """Make the folder of a scene file that is to be written, or say why it cannot be written.

    Args:
        path: Of the scene file.
        capture: A cloud that is read, which the cloud beside the scene file must not replace.
    """
    if path.suffix not in SUFFIXES:
        raise BadConfig(f"{path} cannot be a scene file: its name must end with .yaml.")
    if path.is_dir():
        raise BadConfig(f"{path} is a folder, not a scene file.")
    beside = path.with_name(f"{path.stem}.ply")
    if capture is not None and beside.resolve() == capture.resolve():
        raise BadConfig(f"{capture} would be overwritten: choose another name than {path.name}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"{path} cannot be written: {error.strerror}.") from None
    if not os.access(path.parent, os.W_OK):
        raise BadConfig(f"{path} cannot be written: {path.parent} does not allow it.")


def write_scene(scene: Scene, path: Path) -> None:
    """Write a scene file with its clouds beside it, so that it is whole or not there."""
    check_target(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            _write_scene(scene, Path(folder) / path.name)
            # The scene file goes last: who finds it finds its clouds, too.
            for file in sorted(Path(folder).iterdir(), key=lambda file: file.name == path.name):
                file.replace(path.parent / file.name)
    except OSError as error:
        raise BadConfig(f"{path} cannot be written: {error.strerror}.") from None


def _write_scene(scene: Scene, path: Path) -> None:
    clouds = []
    for k, part in enumerate(scene.parts):
        name = f"{path.stem}.ply" if len(scene.parts) == 1 else f"{path.stem}.{k}.ply"
        write_cloud(part.cloud, path.with_name(name))
        entry: dict[str, Any] = {"file": name}
        if part.cloud.labels is None:
            entry["body"] = part.owners[0][0]
        else:
            entry["labels"] = [list(owner) for owner in part.owners]
        entry |= {"lit": part.is_lit, "two_sided": part.is_two_sided}
        entry |= {"pos": list(part.pos), "quat_wxyz": list(part.quat_wxyz), "scale": part.scale,
                  "gain": list(part.gain)}  # fmt: skip
        clouds.append(entry)
    sky = [[round(float(c), 4) for c in row] for row in scene.background]
    text = {"format": FORMAT, "background": sky if len(sky) > 1 else sky[0], "clouds": clouds}
    path.write_text(yaml.safe_dump(text, sort_keys=False, default_flow_style=None), "utf-8")


def find_body(model: mujoco.MjModel, name: str) -> int:
    """Return a body's number, or raise BadConfig with the nearest name."""
    number = name[1:] if name.startswith("#") and len(name) < 12 else ""
    if number.isascii() and number.isdigit() and int(number) < model.nbody:
        return int(number)
    names = [model.body(i).name for i in range(model.nbody)]
    if name not in names:
        raise BadConfig(
            f"The scene binds a cloud to the body {name!r}, which the model does not have."
            f"{closest(name, names)} It has: {', '.join(n for n in names if n)}."
        )
    return names.index(name)


def find_geom(model: mujoco.MjModel, owner: Geom) -> tuple[int, int]:
    """Return the numbers of a body and of one of its geoms (-1: none)."""
    body = find_body(model, owner[0])
    count = int(model.body_geomnum[body])
    if owner[1] >= count:
        raise BadConfig(f"The scene names geom {owner[1]} of {owner[0]!r}, which has {count}.")
    if owner[1] < 0:
        # Segmentation shows something of the body.
        return body, int(model.body_geomadr[body]) if body and count else -1
    return body, int(model.body_geomadr[body]) + owner[1]


def owner_of(model: mujoco.MjModel, geom: int) -> Geom:
    """Return which body a geom belongs to, and which of its geoms it is."""
    body = int(model.geom_bodyid[geom])
    return model.body(body).name or f"#{body}", int(geom - model.body_geomadr[body])


def _part(entry: Any, path: Path, number: int) -> Part:
    origin = f"{path}, cloud {number}"
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
        raise BadConfig(f"{origin}: it has no 'file'.")
    _check_keys(entry, PART_KEYS, origin)
    if "body" in entry and "labels" in entry:
        raise BadConfig(f"{origin}: it has both 'body' and 'labels'.")
    cloud = read_cloud(path.parent / entry["file"])
    if "labels" not in entry:
        # All of it follows one body, whatever its labels once stood for.
        cloud = replace(cloud, labels=None)
    scale = _numbers(entry.get("scale", 1.0), 1, "scale", origin)[0]
    if not scale > 0:
        raise BadConfig(f"{origin}: scale is {scale}; it must be larger than 0.")
    turn = _numbers(entry.get("quat_wxyz", (1, 0, 0, 0)), 4, "quat_wxyz", origin)
    length = float(np.linalg.norm(turn))
    if length < 1e-9:
        raise BadConfig(f"{origin}: quat_wxyz has length zero.")
    gain = _numbers(entry.get("gain", (1, 1, 1)), 3, "gain", origin)
    if min(gain) < 0:
        raise BadConfig(f"{origin}: gain is {gain}; it must not be negative.")
    w, x, y, z = (c / length for c in turn)
    px, py, pz = _numbers(entry.get("pos", (0, 0, 0)), 3, "pos", origin)
    return Part(
        cloud,
        _owners(entry, cloud, origin),
        (px, py, pz),
        (w, x, y, z),
        scale,
        (gain[0], gain[1], gain[2]),
        _flag(entry, "lit", False, origin),
        _flag(entry, "two_sided", True, origin),
    )


def _owners(entry: Mapping[str, Any], cloud: Cloud, origin: str) -> tuple[Geom, ...]:
    if "labels" not in entry:
        body = entry.get("body", WORLD)
        if not isinstance(body, str):
            raise BadConfig(f"{origin}: body is {body!r}; it must be a name.")
        return ((body, -1),)
    found: list[Geom] = []
    labels = entry["labels"]
    for label in labels if isinstance(labels, list) else [None]:
        pair = label if isinstance(label, list) else [label, -1]
        if [type(value) for value in pair] != [str, int]:
            raise BadConfig(f"{origin}: labels must be a list of bodies, or of [body, geom].")
        found.append((pair[0], pair[1]))
    if cloud.labels is None:
        raise BadConfig(f"{origin}: the file {entry['file']} has no property 'label'.")
    if cloud.labels.min() < 0 or cloud.labels.max() >= len(found):
        raise BadConfig(
            f"{origin}: its labels go up to {cloud.labels.max()}, but {len(found)} are named."
        )
    return tuple(found)


def _background(value: Any, origin: str) -> NDArray[np.float32]:
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    if len(rows) > 4096:
        raise BadConfig(f"{origin}: background has more than 4096 colours.")
    return np.array([_numbers(row, 3, "background", origin) for row in rows], np.float32)


def _numbers(value: Any, count: int, name: str, origin: str) -> list[float]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    is_good = len(values) == count and all(
        isinstance(v, (int, float)) and not isinstance(v, bool) and abs(v) < 1e6 for v in values
    )
    if not is_good:
        wanted = "a number" if count == 1 else f"{count} numbers"
        raise BadConfig(f"{origin}: {name} is {str(value)[:60]}; it must be {wanted}.")
    return [float(v) for v in values]


def _flag(entry: Mapping[str, Any], name: str, default: bool, origin: str) -> bool:
    value = entry.get(name, default)
    if not isinstance(value, bool):
        raise BadConfig(f"{origin}: {name} is {str(value)[:60]!r}; it must be true or false.")
    return value


def _check_keys(entry: Mapping[Any, Any], known: tuple[str, ...], origin: str) -> None:
    for key in entry:
        if key not in known:
            hint = closest(str(key), known)
            raise BadConfig(f"{origin}: there is no setting {str(key)[:60]!r}.{hint}")
