"""A folder of episodes as the simulator's states, each whole or not there."""

from __future__ import annotations

import importlib.metadata
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core import atomic
from maniple.core.checked_arrays import read_arrays, write_arrays
from maniple.core.checked_file import SETTINGS_BYTES, BadFile, read_json_table
from maniple.core.errors import BadConfig, ClosedError, ManipleError
from maniple.data.episode import Episode
from maniple.data.lerobot import paths
from maniple.data.lerobot.write import hold
from maniple.data.sim_states import SimStates
from maniple.version import __version__

FOLDER = paths.STATES_FOLDER
FORMAT, FORMAT_VERSION = "maniple states", 1
_NAME = re.compile(r"episode_(\d{6,9})\.json")
_TEXTS = ("task", "sentence", "policy", "robot", "model")
_TRUTHS = ("terminated", "truncated", "success")


@dataclass(frozen=True)
class Origin:
    """Where states come from: what they are played and drawn with again."""

    task: str
    """Id of the task."""
    settings: dict[str, Any]
    """Settings of the environment, where they differ from the task's own."""
    fps: int
    robot: str = ""
    policy: str = ""
    """Who acted, for people."""
    model: str = ""
    """Digest of the compiled model."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode: the states, what was done, how it ended, and where it comes from."""

    origin: Origin
    states: SimStates
    action: NDArray
    reward: NDArray[np.float32]
    terminated: bool
    truncated: bool
    success: bool
    seed: int
    sentence: str
    versions: dict[str, str]

    def __len__(self) -> int:
        return len(self.action)


class TrajectoryWriter:
    """Writes the arrays, then the facts: an episode without facts is not there.

    Args:
        root: A folder, in which the states get one of their own.
    """

    def __init__(self, root: str | Path, origin: Origin) -> None:
        self.folder = Path(root) / FOLDER
        if self.folder.exists() and not self.folder.is_dir():
            raise BadConfig(f"{self.folder} is a file; choose another folder.")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.origin = origin
        self._lock = hold(self.folder)

    def add(self, episode: Episode, number: int) -> None:
        """Write one episode that has states; what was there under its number is replaced.

        Raises:
            ManipleError: The disk does not take it; what was written before is whole.
        """
        if self._lock is None:
            raise ClosedError("This writer is closed; make a new one.")
        states = episode.states
        assert states is not None and len(states) == len(episode) + 1
        arrays = {**states.arrays(), "action": episode.action, "reward": episode.reward}
        facts = _facts(self.origin, episode, list(states.randomised))
        try:
            facts_file(self.folder, number).unlink(missing_ok=True)
            write_arrays(arrays_file(self.folder, number), arrays)
            atomic.write_text(facts_file(self.folder, number), json.dumps(facts, indent=1))
        except OSError as error:
            raise ManipleError(
                f"Cannot write the states of episode {number} to {self.folder}: {error}. Those "
                "before it are whole; make room, then go on with --append."
            ) from error

    def close(self) -> None:
        """Let go of the folder; a second call does nothing."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def states_in(root: str | Path) -> Path | None:
    """Return the folder of states of a recording, or None where it has none."""
    root = Path(root)
    for folder in (root / FOLDER, root):
        if folder.is_dir() and numbers_in(folder):
            return folder
    return None


def numbers_in(folder: Path) -> list[int]:
    """Return the numbers of the episodes that are whole."""
    found = [_NAME.fullmatch(path.name) for path in folder.glob("episode_*.json")]
    return sorted(int(name[1]) for name in found if name)


def read_trajectory(folder: Path, number: int) -> Trajectory:
    """Read one episode; nothing in it can run.

    Raises:
        BadFile: It is not one, torn, or of a newer format.
    """
    path = facts_file(folder, number)
    facts = read_json_table(path, SETTINGS_BYTES)
    if facts.get("format") != FORMAT or not isinstance(facts.get("format_version"), int):
        raise BadFile(f"{path} does not tell of states.")
    if facts["format_version"] > FORMAT_VERSION:
        raise BadFile(
            f"{path} has version {facts['format_version']} of the format, written by maniple "
            f"{_texts(facts.get('versions')).get('maniple', '?')}; this is maniple {__version__}, "
            f"which reads up to {FORMAT_VERSION}."
        )
    _check_facts(path, facts)
    arrays = read_arrays(arrays_file(folder, number))
    try:
        states = SimStates.from_arrays(arrays, facts["randomised"])
        action, reward = arrays["action"], arrays["reward"]
        if not 1 <= len(action) == len(reward) == len(states) - 1 == facts["steps"]:
            raise BadConfig("the numbers of states, actions and rewards do not fit together")
    except (BadConfig, KeyError, TypeError) as error:
        raise BadFile(f"Episode {number} in {folder} cannot be used: {error}.") from None
    origin = Origin(
        facts["task"], facts["settings"], facts["fps"], facts["robot"], facts["policy"],
        facts["model"],
    )  # fmt: skip
    return Trajectory(
        origin, states, action, reward, facts["terminated"], facts["truncated"], facts["success"],
        facts["seed"], facts["sentence"], _texts(facts.get("versions")),
    )  # fmt: skip


def facts_file(folder: Path, number: int) -> Path:
    """Return the facts of an episode: they are written last."""
    return folder / f"episode_{number:06d}.json"


def arrays_file(folder: Path, number: int) -> Path:
    """Return the arrays of an episode."""
    return folder / f"episode_{number:06d}.npz"


def versions() -> dict[str, str]:
    """Tell with what states were made: other versions may go on differently."""
    names = ("mujoco", "numpy")
    return {"maniple": __version__, **{name: importlib.metadata.version(name) for name in names}}


def _facts(origin: Origin, episode: Episode, randomised: list[str]) -> dict[str, Any]:
    return {
        "format": FORMAT, "format_version": FORMAT_VERSION, "task": origin.task,
        "settings": origin.settings, "policy": origin.policy, "seed": int(episode.seed),
        "steps": len(episode), "success": episode.success, "terminated": episode.terminated,
        "truncated": episode.truncated, "sentence": episode.task, "fps": origin.fps,
        "robot": origin.robot, "model": origin.model, "versions": versions(),
        "randomised": randomised,
    }  # fmt: skip


def _check_facts(path: Path, facts: dict[str, Any]) -> None:
    wanted = {
        **dict.fromkeys(_TEXTS, str), **dict.fromkeys(_TRUTHS, bool), "settings": dict,
        "seed": int, "steps": int, "fps": int, "randomised": list,
    }  # fmt: skip
    for name, kind in wanted.items():
        if type(facts.get(name)) is not kind:
            raise BadFile(f"{path} says {facts.get(name)!r:.60} of {name!r}.")
    if not 1 <= facts["fps"] <= 100_000 or not all(isinstance(n, str) for n in facts["randomised"]):
        raise BadFile(f"{path} says {facts['fps']!r:.60} of 'fps', or no names in 'randomised'.")


def _texts(found: Any) -> dict[str, str]:
    table = found if isinstance(found, dict) else {}
    return {name: str(value)[:40] for name, value in table.items()}
