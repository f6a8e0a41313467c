"""Keep checkpoints that are whole or not there, and that cannot run code."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core import atomic
from maniple.core.checked_file import BadFile, check_file, read_json_table
from maniple.core.errors import BadConfig, one_line
from maniple.core.optional import require
from maniple.run.folder import CONFIG, Names
from maniple.run.ranks import ALONE, Ranks
from maniple.run.tree import split, unsplit

WEIGHTS, STATE, MANIFEST = "weights.safetensors", "state.json", "manifest.json"
LAYOUT = 2
"""Changes whenever what is stored changes its meaning."""


class Checkpoint:
    """One whole checkpoint on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def step(self) -> int:
        """Environment steps at which it was made."""
        return int(self.path.name.rpartition("-")[2])

    def arrays(self, rank: int = 0) -> dict[str, NDArray]:
        """Read the arrays of one rank."""
        return read_arrays(self.path / _of_rank(WEIGHTS, rank))

    def about(self, rank: int = 0) -> dict[str, Any]:
        """Read what one rank stored besides arrays."""
        return read_json_table(self.path / _of_rank(STATE, rank))

    def state(self, ranks: Ranks = ALONE) -> dict[str, Any]:
        """Read everything that this rank stored.

        Raises:
            BadConfig: Another version of maniple, or another number of ranks, wrote it.
        """
        self.check(ranks)
        try:
            return unsplit(self.about(ranks.rank)["state"], self.arrays(ranks.rank))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, BadConfig):
                raise
            raise BadFile(
                f"{self.path} does not hold the state of a run ({error!r}); choose another."
            ) from None

    def check(self, ranks: Ranks) -> None:
        """Refuse what another version of maniple, or another number of ranks, wrote."""
        about = self.about()
        if about.get("layout") != LAYOUT:
            raise BadConfig(
                f"{self.path} was written by another version of maniple (layout "
                f"{about.get('layout', 1)}, this one reads {LAYOUT}): 'maniple eval' can judge it, "
                "but training cannot go on from it. Begin anew in another --run-dir."
            )
        if about.get("world_size") != ranks.world_size:
            raise BadConfig(
                f"{self.path} was written by {about.get('world_size')} ranks, and there are "
                f"{ranks.world_size} now. Start with --nproc-per-node so that there are "
                f"{about.get('world_size')}."
            )

    def acting_weights(self) -> dict[str, NDArray]:
        """Pick out what acting needs."""
        arrays = self.arrays()
        # The last prefix is that of checkpoints before version 0.2.
        for prefix in ("acting.", "learner.agent.", "agent."):
            found = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            if found:
                return {k: a for k, a in found.items() if k.startswith(("policy.", "eye."))}
        raise BadConfig(f"{self.path} holds no policy.")

    def hash(self) -> NDArray[np.uint8]:
        """Return the digest of its manifest, and so of all that it holds."""
        return np.frombuffer(bytes.fromhex(digest(self.path / MANIFEST)), np.uint8)

    def files(self) -> list[Path]:
        """Files outside its own folder that it needs."""
        try:
            entries = read_json_table(self.path / MANIFEST)
        except BadFile:
            return []  # Another rank has just removed it, or it is torn.
        # Without the way through this folder, which will be gone before its files are.
        outside = [name for name in entries if name.startswith("..")]
        return [Path(os.path.normpath(self.path / name)) for name in outside]

    def complaint(self) -> str | None:
        """Say what is wrong with it; None: it is whole."""
        manifest = self.path / MANIFEST
        if not manifest.exists():
            return f"{self.path} has no {MANIFEST}: it was not finished"
        # Wherever checkpoints lie in it; one that was copied away is alone.
        parents = self.path.parents
        run = next((p for p in parents if (p / CONFIG).exists()), self.path.parent.parent)
        try:
            for name, entry in read_json_table(manifest).items():
                file = self.path / name
                size = check_file(file, inside=run)
                if size != entry["bytes"]:
                    return f"{file} has {size} bytes, not {entry['bytes']}"
                if digest(file) != entry["sha256"]:
                    return f"{file} was changed after it was written"
        except BadFile as error:
            return str(error).rstrip(".")
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
            return f"{manifest} is not readable ({error})"
        return None


class Checkpoints:
    """The checkpoints of a run: the newest few, and the best."""

    def __init__(self, folder: str | Path, keep: int = 2, names: Names | None = None) -> None:
        self.folder = Path(folder)
        self.keep = keep
        self._names = names or Names()

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        write_files: Callable[[], Sequence[Path]] = tuple,
        kind: str = "step",
        ranks: Ranks = ALONE,
    ) -> Checkpoint:
        """Write one and remove what is older than the newest few of its kind.

        Args:
            state: A nested table of arrays and plain values.
            write_files: Writes what it needs elsewhere in the run, and returns those files.
            kind: 'step', or 'best', of which one stays.
            ranks: All of them write their own state; the whole appears when all have.
        """
        final = self.folder / self._names.checkpoint_name(kind, step)
        part = self.folder / f".part-{final.name}"

        def make_room() -> None:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir()

        def write() -> None:
            _write_part(part, final, ranks, state, write_files())

        def seal() -> None:
            _seal(part, final, ranks.world_size)

        for do, is_mine in ((make_room, ranks.is_main), (write, True), (seal, ranks.is_main)):
            failure: OSError | None = None
            try:
                if is_mine:
                    do()
            except OSError as error:
                failure = error
            # No rank goes on alone: a checkpoint is whole only if every rank's part is.
            if ranks.highest(int(failure is not None)):
                shutil.rmtree(part, ignore_errors=True)
                why = failure.strerror if failure else "on another rank"
                raise BadConfig(
                    f"The checkpoint {final} could not be written ({why}). The one before it is "
                    "untouched. Free some space and add --resume."
                ) from failure
        keep = 1 if kind == "best" else self.keep
        for old in self._named(kind)[:-keep] if ranks.is_main else ():
            shutil.rmtree(old, ignore_errors=True)
        return Checkpoint(final)

    def latest(self, kind: str = "step") -> Checkpoint | None:
        """Return the newest whole one."""
        return self.latest_and_torn(kind)[0]

    def latest_and_torn(self, kind: str = "step") -> tuple[Checkpoint | None, list[str]]:
        """Return the newest whole one, and what is wrong with those that are newer."""
        complaints = []
        for path in reversed(self._named(kind)):
            found = Checkpoint(path)
            complaint = found.complaint()
            if complaint is None:
                return found, complaints
            complaints.append(complaint)
        return None, complaints

    def whole(self) -> list[Checkpoint]:
        """Return all that are still there and have a manifest."""
        found = [Checkpoint(p) for kind in ("step", "best") for p in self._named(kind)]
        return [c for c in found if (c.path / MANIFEST).exists()]

    def _named(self, kind: str) -> list[Path]:
        found = [p for p in self.folder.glob(self._names.checkpoint_glob(kind)) if p.is_dir()]
        return sorted((p for p in found if _has_step(p)), key=lambda p: Checkpoint(p).step)


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
    there = Checkpoints(folder)
    latest = (there.latest("best") if best else None) or there.latest()
    if latest is None:
        raise BadConfig(f"{path} holds no whole checkpoint.")
    return latest


def _write_part(
    part: Path, final: Path, ranks: Ranks, state: Mapping[str, Any], files: Sequence[Path]
) -> None:
    """Write what one rank has, and the list of its files."""
    arrays: dict[str, NDArray] = {}
    about = {"layout": LAYOUT, "world_size": ranks.world_size}
    about |= {"state": split(dict(state), "", arrays)}
    weights, rest = (part / _of_rank(name, ranks.rank) for name in (WEIGHTS, STATE))
    write_arrays(weights, arrays)
    atomic.write_text(rest, json.dumps(about))
    entries = {file.name: _entry(file) for file in (weights, rest)}
    entries |= {os.path.relpath(file, final): _entry(file) for file in files}
    atomic.write_text(part / f"{ranks.rank}.entries", json.dumps(entries))


def _seal(part: Path, final: Path, world_size: int) -> None:
    """Write the manifest of all ranks' files, and give the folder its name."""
    manifest: dict[str, Any] = {}
    for rank in range(world_size):
        entries = part / f"{rank}.entries"
        manifest |= json.loads(entries.read_text())
        entries.unlink()
    atomic.write_text(part / MANIFEST, json.dumps(manifest, indent=1))
    # One of the same step goes only when this one has its name.
    old = final.with_name(f".old-{final.name}")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    part.rename(final)
    atomic.sync_folder(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def _has_step(path: Path) -> bool:
    """Tell a checkpoint from a folder that somebody called like one."""
    return path.name.rpartition("-")[2].isdecimal()


def _of_rank(name: str, rank: int) -> str:
    """state.json is rank 0's, state.rank1.json the next one's."""
    head, _, ending = name.partition(".")
    return name if rank == 0 else f"{head}.rank{rank}.{ending}"


def write_arrays(path: Path, arrays: Mapping[str, NDArray]) -> None:
    """Write arrays to a safetensors file that is whole or not there."""
    require("safetensors")
    from safetensors.numpy import save

    atomic.write_bytes(
        path, save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    )


def read_arrays(path: Path) -> dict[str, NDArray]:
    """Read a safetensors file; nothing in it can run."""
    require("safetensors")
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    check_file(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise BadFile(f"{path} is not readable: {one_line(error)}.") from None


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _entry(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": digest(path)}
