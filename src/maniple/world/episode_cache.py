"""Keep decoded episodes of a dataset in one file, so that films are decoded once."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maniple.data.demos import datasets_in, load
from maniple.data.episode import Episode
from maniple.run.checkpoint import read_arrays, write_arrays


def load_cached(dataset: Path, cache: Path | None) -> list[Episode]:
    """Read all episodes of a dataset, from the cache if it holds this very dataset."""
    if cache is None:
        return load(dataset)
    path = cache / f"{_fingerprint(dataset)}.safetensors"
    if not path.exists():
        episodes = load(dataset)
        write_arrays(path, _joined(episodes))
        return episodes
    return _apart(read_arrays(path))


def _fingerprint(dataset: Path) -> str:
    """Name a dataset by all of its files: one that was changed has another name."""
    digest = hashlib.sha256()
    for root in datasets_in(dataset):
        for path in sorted(p for p in root.rglob("*") if p.is_file()):
            facts = path.stat()
            line = f"{path.relative_to(root)} {facts.st_size} {facts.st_mtime_ns}\n"
            digest.update(line.encode())
    return digest.hexdigest()[:32]


def _joined(episodes: list[Episode]) -> dict[str, NDArray]:
    names = episodes[0].obs
    found = {f"obs.{n}": np.concatenate([e.obs[n] for e in episodes]) for n in names}
    flags = [(e.terminated, e.truncated, e.success) for e in episodes]
    return found | {
        "action": np.concatenate([e.action for e in episodes]),
        "reward": np.concatenate([e.reward for e in episodes]),
        "length": np.array([len(e) for e in episodes], np.int64),
        "flags": np.array(flags, np.uint8),
    }


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
