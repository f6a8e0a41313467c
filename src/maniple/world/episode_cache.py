"""Keep decoded episodes of a dataset on disk, so that films are decoded once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from maniple.core.checked_file import BadFile, check_file, read_text
from maniple.core.errors import one_line
from maniple.data.demos import datasets_in, read_each
from maniple.data.episode import Episode

INDEX = "index.json"
"""Written last: what every file holds."""
PictureSize = tuple[int, int] | None


def load_cached(
    dataset: Path, cache: Path | None, picture_size: PictureSize = None
) -> list[Episode]:
    """Read all episodes of a dataset, from the cache if it holds this very dataset.

    The arrays of a cache are mapped: what is not looked at is not read.

    Args:
        picture_size: Height and width to which pictures are scaled as they are decoded.
    """
    if cache is None:
        return list(read_each(dataset, picture_size=picture_size))
    folder = cache / _fingerprint(dataset, picture_size)
    if not folder.exists():
        _write(folder, read_each(dataset, picture_size=picture_size))
    return _apart(_mapped(folder))


def _fingerprint(dataset: Path, picture_size: PictureSize) -> str:
    """Name a dataset by all of its files: one that was changed has another name."""
    digest = hashlib.sha256(f"{picture_size}\n".encode())
    for root in datasets_in(dataset):
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            facts = path.stat()
            line = f"{path.relative_to(root)} {facts.st_size} {facts.st_mtime_ns}\n"
            digest.update(line.encode())
    return digest.hexdigest()[:32]


def _write(folder: Path, episodes: Iterable[Episode]) -> None:
    """Append every episode to a file per array, as soon as it is decoded."""
    part = folder.with_name(f"{folder.name}.part-{os.getpid()}")
    part.mkdir(parents=True)
    try:
        index: dict[str, Any] = {}
        with ExitStack() as stack:
            files: dict[str, BinaryIO] = {}
            for episode in episodes:
                for name, array in _arrays(episode).items():
                    if name not in files:
                        files[name] = stack.enter_context((part / f"{name}.raw").open("wb"))
                        index[name] = {"shape": [0, *array.shape[1:]], "dtype": array.dtype.str}
                    files[name].write(np.ascontiguousarray(array).data)
                    index[name]["shape"][0] += len(array)
        (part / INDEX).write_text(json.dumps(index))
        try:
            part.rename(folder)
        except OSError:
            # Another rank was faster; its files hold the same.
            if not folder.exists():
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _arrays(episode: Episode) -> dict[str, NDArray]:
    flags = [[episode.terminated, episode.truncated, episode.success]]
    return {f"obs.{name}": array for name, array in episode.obs.items()} | {
        "action": episode.action,
        "reward": episode.reward,
        "length": np.array([len(episode)], np.int64),
        "flags": np.array(flags, np.uint8),
    }


def _mapped(folder: Path) -> dict[str, NDArray]:
    """Map the files of a cache, refusing those that are not what the index says."""
    found = {}
    try:
        for name, about in json.loads(read_text(folder / INDEX)).items():
            shape, dtype = tuple(about["shape"]), np.dtype(about["dtype"])
            path = folder / f"{name}.raw"
            size = check_file(path, inside=folder)
            if size != int(np.prod(shape)) * dtype.itemsize:
                raise BadFile(f"{path} has {size:,} bytes, which is not what {INDEX} says.")
            empty = np.empty(shape, dtype)
            found[name] = np.memmap(path, dtype, "r", shape=shape) if size else empty
        lengths = found["length"]
        if not all(name in found for name in ("action", "reward", "flags")):
            raise BadFile(f"{folder} lacks arrays.")
        if int(lengths.sum()) != len(found["action"]):
            raise BadFile(f"{folder} has other actions than episodes.")
    except (BadFile, KeyError, TypeError, ValueError) as error:
        raise BadFile(
            f"The cache {folder} cannot be used: {one_line(error)} Delete it; it is made again."
        ) from None
    return found


def _apart(arrays: dict[str, NDArray]) -> list[Episode]:
    found, step = [], 0
    for number, length in enumerate(arrays["length"].tolist()):
        # Every episode before this one has a frame more than actions.
        frames, moves = slice(step + number, step + number + length + 1), slice(step, step + length)
        obs = {n.removeprefix("obs."): a[frames] for n, a in arrays.items() if n.startswith("obs.")}
        terminated, truncated, success = arrays["flags"][number].astype(bool).tolist()
        action, reward = arrays["action"][moves], arrays["reward"][moves]
        found.append(Episode(obs, action, reward, terminated, truncated, success))
        step += length
    return found
