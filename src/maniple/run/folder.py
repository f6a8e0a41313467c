"""The folder of one run: settings as they were resolved, versions, and places for results."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from maniple.core import atomic
from maniple.core.checked_file import read_yaml_table
from maniple.core.errors import BadConfig

CONFIG, VERSIONS = "config.yaml", "versions.yaml"
PACKAGES = ("maniple", "numpy", "gymnasium", "mujoco", "torch", "accelerate", "ray")


@dataclasses.dataclass(frozen=True)
class Names:
    """What the files and folders of a run are called, where its users know other names."""

    checkpoints: str = "checkpoints"
    """Folder of the checkpoints; '.': the run folder itself."""
    checkpoint: str = "step-{step:09d}"
    """Name of a checkpoint. The best one is called best-..."""
    metrics: str = "metrics.jsonl"
    replay: str = "replay"
    tensorboard: str = "tensorboard"
    videos: str = "videos"

    def checkpoint_name(self, kind: str, step: int) -> str:
        """Name a checkpoint of a kind, 'step' or 'best'."""
        return self.checkpoint.format(step=step) if kind == "step" else f"{kind}-{step:09d}"

    def checkpoint_glob(self, kind: str) -> str:
        """Match the checkpoints of a kind."""
        return f"{self.checkpoint.partition('{')[0]}*" if kind == "step" else f"{kind}-*"


class RunFolder:
    """A folder that says by itself what was run and how."""

    def __init__(self, path: str | Path, names: Names | None = None) -> None:
        # Without '..': files of a run are compared by their paths.
        self.path = Path(os.path.normpath(path))
        self.names = names or Names()
        self.checkpoints = self.path / self.names.checkpoints
        self.replay = self.path / self.names.replay
        self.videos = self.path / self.names.videos
        self.metrics = self.path / self.names.metrics
        self.tensorboard = self.path / self.names.tensorboard

    @property
    def is_used(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / CONFIG).exists()

    def check_free(self) -> None:
        """Refuse a folder that holds another run."""
        if self.is_used:
            raise BadConfig(
                f"{self.path} holds a run already. Add --resume to go on with it, or name "
                "another --run-dir."
            )

    def create(self, config: Any) -> None:
        """Write the settings and the versions."""
        self.check_free()
        self.write_config(config)
        write_yaml(self.path / VERSIONS, versions())

    def write_config(self, config: Any) -> None:
        """Write the settings, also of a resumed run that changed some."""
        write_yaml(self.path / CONFIG, plain(config))

    def config(self) -> dict[str, Any]:
        """Read the settings back."""
        path = self.path / CONFIG
        if not path.exists():
            raise BadConfig(f"{self.path} is no run folder: it has no {CONFIG}.")
        return read_yaml_table(path)


def folder_of(path: Path) -> RunFolder:
    """Return the run folder that a path is, or is in, whatever lies between."""
    around = (path, *path.parents)
    return RunFolder(next((there for there in around if (there / CONFIG).exists()), path.parent))


def plain(value: Any) -> Any:
    """Turn settings into lists, tables and numbers."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def write_yaml(path: Path, content: Any) -> None:
    """Write a file that is whole or not there."""
    atomic.write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))


def versions() -> dict[str, Any]:
    """What this run was made with."""
    found: dict[str, Any] = {"python": platform.python_version(), "machine": platform.platform()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["command"] = [Path(sys.argv[0]).name, *sys.argv[1:]]
    found["git"] = _git("rev-parse", "HEAD")
    found["git_changes"] = bool(_git("status", "--porcelain"))
    return found


def _git(*words: str) -> str | None:
    here = Path(__file__).resolve().parent
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", str(here), *words],
            capture_output=True, text=True, timeout=10, check=False, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
