"""Keep checkpoints that are whole or not there, and that cannot run code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.optional import require

WEIGHTS, STATE, MANIFEST = "weights.safetensors", "state.json", "manifest.json"


class Checkpoint:
    """One whole checkpoint on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def step(self) -> int:
        """Environment steps at which it was made."""
        return int(self.path.name.rpartition("-")[2])

    def arrays(self) -> dict[str, NDArray]:
        """Read the weights."""
        return read_arrays(self.path / WEIGHTS)

    def state(self) -> dict[str, Any]:
        """Read the counters and everything else that is no array."""
        return json.loads((self.path / STATE).read_text())

    def files(self) -> list[Path]:
        """Files outside its own folder that it needs."""
        entries = json.loads((self.path / MANIFEST).read_text())
        # Without the way through this folder, which will be gone before its files are.
        outside = [name for name in entries if name.startswith("..")]
        return [Path(os.path.normpath(self.path / name)) for name in outside]

    def complaint(self) -> str | None:
        """Say what is wrong with it; None: it is whole."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            return f"{self.path} has no {MANIFEST}: it was not finished"
        try:
            entries = json.loads(manifest.read_text())
            for name, entry in entries.items():
                file = self.path / name
                if not file.exists():
                    return f"{file} is missing"
                if file.stat().st_size != entry["bytes"]:
                    return f"{file} has {file.stat().st_size} bytes, not {entry['bytes']}"
                if digest(file) != entry["sha256"]:
                    return f"{file} was changed after it was written"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"{manifest} is not readable ({error})"
        return None


class Checkpoints:
    """The checkpoints of a run: the newest few, and the best."""

    def __init__(self, folder: str | Path, keep: int = 2) -> None:
        self.folder = Path(folder)
        self.keep = keep

    def save(
        self,
        step: int,
        arrays: Mapping[str, NDArray],
        state: Mapping[str, Any],
        files: Sequence[Path] = (),
        kind: str = "step",
        keep: int | None = None,
    ) -> Checkpoint:
        """Write one and remove what is older than the newest few of its kind.

        Args:
            files: Finished files elsewhere in the run that it needs.
            kind: 'step', or 'best'.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        final = self.folder / f"{kind}-{step:09d}"
        part = self.folder / f".part-{final.name}"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            write_arrays(part / WEIGHTS, arrays)
            _write_text(part / STATE, json.dumps(state))
            own = {name: _entry(part / name) for name in (WEIGHTS, STATE)}
            others = {os.path.relpath(file, final): _entry(file) for file in files}
            _write_text(part / MANIFEST, json.dumps(own | others, indent=1))
            _sync_folder(part)
            shutil.rmtree(final, ignore_errors=True)
            part.rename(final)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise BadConfig(
                f"The checkpoint {final} could not be written ({error.strerror}). The one before "
                "it is untouched. Free some space and add --resume."
            ) from error
        _sync_folder(self.folder)
        for old in self._named(kind)[: -(keep or self.keep)]:
            shutil.rmtree(old, ignore_errors=True)
        return Checkpoint(final)

    def latest(self, kind: str = "step") -> Checkpoint | None:
        """Return the newest whole one."""
        for path in reversed(self._named(kind)):
            found = Checkpoint(path)
            if found.complaint() is None:
                return found
        return None

    def complaints(self, kind: str = "step") -> list[str]:
        """Say what is wrong with those that are newer than the newest whole one."""
        found = []
        for path in reversed(self._named(kind)):
            complaint = Checkpoint(path).complaint()
            if complaint is None:
                break
            found.append(complaint)
        return found

    def whole(self) -> list[Checkpoint]:
        """Return all that are still there and have a manifest."""
        found = [Checkpoint(p) for kind in ("step", "best") for p in self._named(kind)]
        return [c for c in found if (c.path / MANIFEST).exists()]

    def _named(self, kind: str) -> list[Path]:
        return sorted(self.folder.glob(f"{kind}-*"))


def find(path: str | Path, best: bool = True) -> Checkpoint:
    """Find the checkpoint that a user means: a run folder, its checkpoints, or one of them."""
    path = Path(path)
    if not path.exists():
        raise BadConfig(f"There is no checkpoint at {path}.")
    if (path / MANIFEST).exists() or (path / WEIGHTS).exists():
        found = Checkpoint(path)
        if complaint := found.complaint():
            raise BadConfig(f"{complaint}. A torn checkpoint is not loaded; choose another.")
        return found
    folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    shelf = Checkpoints(folder)
    latest = (shelf.latest("best") if best else None) or shelf.latest()
    if latest is None:
        raise BadConfig(f"{path} holds no whole checkpoint.")
    return latest


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays to a safetensors file and make sure that they are on the disk."""
    require("safetensors")
    import numpy as np
    from safetensors.numpy import save

    data = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_arrays(path: Path) -> dict[str, NDArray]:
    """Read a safetensors file; nothing in it can run."""
    require("safetensors")
    from safetensors.numpy import load_file

    return load_file(path)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": digest(path)}


def _write_text(path: Path, text: str) -> None:
    with path.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
