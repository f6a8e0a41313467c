"""Read demonstrations that RLBench has stored, without RLBench and without running its pickles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

from maniple.core.checked_file import SETTINGS_BYTES, read_bytes
from maniple.core.errors import BadConfig
from maniple.envs.rlbench.config import LOW_DIM, USUAL, RLBenchConfig
from maniple.envs.rlbench.contract import observations
from maniple.envs.rlbench.names import find_task
from maniple.envs.rlbench.observation import demo_arrays
from maniple.envs.rlbench.safe_pickle import Thing, read_pickle

DEPTH_STEPS = 2**24 - 1
"""Depth is stored in the three bytes of a colour, as a fraction of the way from near to far."""


PICKLE_BYTES = 256 * 2**20


class StoredDemo(NamedTuple):
    """One demonstration on the disk."""

    folder: Path
    variation: int
    sentences: tuple[str, ...]


def find_demos(root: str | Path, task: str) -> list[StoredDemo]:
    """List the demonstrations of a task in a dataset's folder, variation by variation."""
    root, name = Path(root), find_task(task)
    found = []
    for folder in sorted((root / name).glob("variation*"), key=_number):
        descriptions = folder / "variation_descriptions.pkl"
        sentences = _sentences(descriptions) if descriptions.is_file() else ()
        for episode in sorted((folder / "episodes").glob("episode*"), key=_number):
            if (episode / "low_dim_obs.pkl").is_file():
                found.append(StoredDemo(episode, _number(folder), sentences))
    if not found:
        raise BadConfig(
            f"{root} holds no demonstrations of {name}; they would be in "
            f"{root / name}/variation0/episodes/episode0."
        )
    return found


def load_demo(demo: StoredDemo, config: RLBenchConfig) -> dict[str, Any]:
    """Read a demonstration: 'obs' (arrays by name, T + 1 rows), 'action' (T, 8), 'sentence'."""
    content = read_pickle(read_bytes(demo.folder / "low_dim_obs.pkl", PICKLE_BYTES))
    rows = list(_rows(content))
    if len(rows) < 2:
        raise BadConfig(f"{demo.folder} holds {len(rows)} observations; a demonstration has more.")
    for number, row in enumerate(rows):
        for camera in config.cameras:
            for kind in config.image_kinds:
                _add_picture(demo.folder, row, camera, kind, number)
    low_dim = np.size(getattr(rows[0], LOW_DIM, 0.0))
    layout = observations(_as_recorded(config, rows[0]), low_dim)
    arrays = demo_arrays(rows, layout, demo.variation)
    return {**arrays, "sentence": demo.sentences[0] if demo.sentences else ""}


def _as_recorded(config: RLBenchConfig, row: Any) -> RLBenchConfig:
    """Leave out what was not recorded, unless it was asked for by name."""
    if config.observations != USUAL:
        return config
    known = (n for n in USUAL if n == "variation_index" or getattr(row, n, None) is not None)
    return replace(config, observations=tuple(known))


def _sentences(path: Path) -> tuple[str, ...]:
    """Read the sentences of a variation; whatever else is in there is left out."""
    found = read_pickle(read_bytes(path, SETTINGS_BYTES))
    if not isinstance(found, list):
        raise BadConfig(f"{path} holds no list of sentences.")
    return tuple(one for one in found if isinstance(one, str))


def picture_size(demo: StoredDemo, cameras: tuple[str, ...]) -> tuple[int, int]:
    """Return height and width of a demonstration's pictures; any size where there are none."""
    for camera in cameras:
        path = demo.folder / f"{camera}_rgb" / "0.png"
        if path.is_file():
            height, width = _picture(path).shape[:2]
            return height, width
    return 128, 128


def _rows(content: Any) -> Iterator[Thing]:
    """Find the observations: RLBench's Demo keeps them in a list."""
    listed = content if isinstance(content, list) else getattr(content, "_observations", None)
    if not isinstance(listed, list) or not all(isinstance(row, Thing) for row in listed):
        raise BadConfig("The pickle holds no list of observations.")
    yield from listed


def _add_picture(folder: Path, row: Thing, camera: str, kind: str, number: int) -> None:
    state = row.state
    if kind == "point_cloud":
        raise BadConfig(
            "Stored demonstrations hold no point clouds; leave them out of image_kinds."
        )
    path = folder / f"{camera}_{kind}" / f"{number}.png"
    if not path.is_file():
        raise BadConfig(f"{path} is missing; leave {camera!r} out of cameras.")
    colours = _picture(path)
    if kind == "rgb":
        state[f"{camera}_rgb"] = colours
        return
    parts = colours.astype(np.int64)
    if kind == "mask":
        # The handle's lowest byte is red.
        state[f"{camera}_mask"] = parts[..., 0] + 256 * parts[..., 1] + 65536 * parts[..., 2]
        return
    fraction = (65536 * parts[..., 0] + 256 * parts[..., 1] + parts[..., 2]) / DEPTH_STEPS
    near, far = (float(state["misc"][f"{camera}_camera_{end}"]) for end in ("near", "far"))
    state[f"{camera}_depth"] = near + fraction * (far - near)


def _picture(path: Path) -> NDArray[np.uint8]:
    # The format is given: a guessed one could be a playlist that opens other files.
    with av.open(str(path), format="png_pipe") as file:
        return np.asarray(next(file.decode(video=0)).to_ndarray(format="rgb24"), np.uint8)


def _number(path: Path) -> int:
    digits = "".join(c for c in path.name if c.isdigit())
    return int(digits) if digits else -1
