"""Append episodes to a dataset, each complete before the dataset tells of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig, ClosedError, ManipleError
from maniple.core.flock import lock_file
from maniple.data.episode import Episode
from maniple.data.lerobot import meta, paths
from maniple.data.lerobot.features import NEXT, STATE, Features
from maniple.data.lerobot.film import write_film
from maniple.data.lerobot.stats import Stats, picture_stats, pooled, unflat, vector_stats
from maniple.data.lerobot.table import numbered, numbers, to_table, write_table


class DatasetWriter:
    """Writes films, then the table, then the facts; info.json comes last.

    A kill at any moment costs at most the episode that was being written, and
    `maniple data repair` finds even that one where its files were complete.

    Args:
        root: The dataset's folder: new, empty, or a dataset with the same features to go on with.
        fps: Steps per second.
        robot: The robot's name.
        origin: Where the episodes come from, as in {"renderer": "fast"}; those that are there must
            come from the same place.
    """

    def __init__(
        self, root: str | Path, fps: int, robot: str = "", origin: dict[str, str] | None = None
    ) -> None:
        self.root = Path(root)
        self.fps = int(fps)
        self.robot = robot
        self.origin = dict(origin or {})
        self.episodes = 0
        self.frames = 0
        self._tasks: list[str] = []
        self._stats: Stats = {}
        self._features: Features | None = None
        self._next_number = 0
        if self.fps < 1:
            raise BadConfig(f"fps is {fps}; it must be 1 or larger.")
        _check_folder(self.root)
        self.root.mkdir(parents=True, exist_ok=True)
        self._lock = hold(self.root)
        if (self.root / paths.INFO_PATH).is_file():
            try:
                self._go_on()
            except BaseException:
                self.close()
                raise

    def add(self, episode: Episode) -> int:
        """Write one episode; return its number.

        Raises:
            BadConfig: It has other arrays than those before it.
            ManipleError: The disk does not take it; what was written before is whole.
        """
        if self._lock is None:
            raise ClosedError("This writer is closed; make a new one.")
        try:
            return self._add(episode)
        except OSError as error:
            raise ManipleError(
                f"Cannot write episode {self.episodes} to {self.root}: {error}. Make room, then "
                f"type: maniple data repair {self.root}"
            ) from error

    def _add(self, episode: Episode) -> int:
        features = Features.of(episode)
        if self._features is None:
            self._features = features
        elif features != self._features:
            raise BadConfig(_difference(self._features, features, self.root))
        _check_seed(episode.seed)
        number, described = self._next_number, features.info(self.fps)
        about = {
            "task": episode.task, "fps": self.fps, "robot_type": self.robot, "features": described,
        }  # fmt: skip
        stats: Stats = {}
        for name, film in features.films.items():
            frames = episode.obs[name]
            write_film(paths.video_file(self.root, film.key, number), frames, self.fps)
            stats[film.key] = picture_stats(frames[:-1])
        table = to_table(episode, features, self.fps, about)
        task = self._task(episode.task)
        table = numbered(table, self.episodes, self.frames, task)
        write_table(paths.data_file(self.root, number), table)
        stats |= table_stats(table, features)
        row = meta.episode_row(
            self.episodes, number, self.frames, len(episode), episode.task,
            [film.key for film in features.films.values()], self.fps, stats, ending(table),
        )  # fmt: skip
        meta.write_episode_row(self.root, number, row)
        self._describe(described, stats, len(episode))
        self._next_number += 1
        return self.episodes - 1

    def close(self) -> None:
        """Let go of the folder; a second call does nothing."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _go_on(self) -> None:
        info = meta.read_info(self.root)
        if info["fps"] != self.fps:
            raise BadConfig(
                f"{self.root} has {info['fps']} steps per second, not {self.fps}; "
                "choose another folder."
            )
        rows = meta.read_episode_rows(self.root)
        files = paths.numbered(self.root / "data", "parquet")
        if not len(rows) == len(files) == info["total_episodes"]:
            raise BadConfig(
                f"{self.root} tells of {info['total_episodes']} episodes, but has files of "
                f"{len(files)}. Type: maniple data repair {self.root}"
            )
        self.robot = self.robot or info.get("robot_type") or ""
        there = meta.read_origin(self.root)
        for name in self.origin.keys() & there.keys():
            if self.origin[name] != there[name]:
                raise BadConfig(
                    f"The {name} of {self.root} is {there[name]!r}, not {self.origin[name]!r}; "
                    "choose another folder."
                )
        self.origin = {**there, **self.origin}
        self.episodes, self.frames = info["total_episodes"], info["total_frames"]
        self._features = Features.from_info(info["features"])
        if not self._features.has_next:
            raise BadConfig(f"{self.root} was not written by maniple; choose another folder.")
        self._tasks = meta.read_tasks(self.root)
        self._stats = self._pooled_stats()
        self._next_number = max(files, default=-1) + 1

    def _pooled_stats(self) -> Stats:
        """Take the statistics from where they were written, or make them again."""
        stats = meta.read_stats(self.root)
        if stats.get("action", {}).get("count") == [self.frames]:
            return stats
        return pooled([unflat(row) for row in meta.read_episode_rows(self.root, with_stats=True)])

    def _task(self, task: str) -> int:
        if task not in self._tasks:
            self._tasks.append(task)
            meta.write_tasks(self.root, self._tasks)
        return self._tasks.index(task)

    def _describe(self, features: dict[str, Any], stats: Stats, steps: int) -> None:
        self.episodes += 1
        self.frames += steps
        self._stats = pooled([self._stats, stats]) if self._stats else stats
        meta.write_stats(self.root, self._stats)
        if self.origin:
            meta.write_origin(self.root, self.origin)
        meta.write_info(
            self.root,
            meta.make_info(
                self.fps, self.robot, features, self.episodes, self.frames, len(self._tasks)
            ),
        )


def table_stats(table: Any, features: Features) -> Stats:
    """Describe the vectors and scalars of a table."""
    columns = [c for c in [*features.columns, features.action] if len(c.shape) <= 1]
    stats = {column.key: vector_stats(numbers(table, column.key, column)) for column in columns}
    known = set(stats) | {NEXT + column.key for column in features.columns}
    for key in table.column_names:
        if key not in known and key not in (STATE, *[c.key for c in features.columns]):
            stats[key] = vector_stats(table[key].to_numpy())
    return stats


def ending(table: Any) -> dict[str, Any]:
    """Tell how the episode of a table ended."""
    last = table.slice(table.num_rows - 1).to_pylist()[0]
    described = {name: last[f"next.{name}"] for name in ("success", "terminated", "truncated")}
    return described | {"seed": last["episode_seed"]}


def _check_folder(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise BadConfig(f"{root} is a file; give a folder.")
    if (root / paths.INFO_PATH).is_file() or not root.exists():
        return
    known = (*paths.FOLDERS, paths.TORN_FOLDER, paths.STATES_FOLDER, paths.LOCK_NAME)
    others = sorted(path.name for path in root.iterdir() if path.name not in known)
    if others:
        raise BadConfig(
            f"{root} holds other things ({others[0]!r}); give a new folder or a dataset."
        )
    if any(path.is_file() for name in ("data", "videos") for path in (root / name).rglob("*")):
        raise BadConfig(
            f"{root} holds a dataset without {paths.INFO_PATH}, as a killed run leaves it. "
            f"Type: maniple data repair {root}"
        )


def hold(root: Path) -> Any:
    """Keep other writers out until the file is closed; the kernel does so where we die."""
    file = (root / paths.LOCK_NAME).open("w")
    try:
        lock_file(file, wait=False)
    except OSError:
        file.close()
        raise BadConfig(f"Another process is writing {root}; wait for it to end.") from None
    return file


def _check_seed(seed: int) -> None:
    if not -1 <= seed < 2**63:
        raise BadConfig(f"The episode's seed is {seed}; a dataset holds seeds below 2**63.")


def _difference(old: Features, new: Features, root: Path) -> str:
    """Name a feature in which an episode differs from those before it."""
    there, here = (
        {c.key: f"{c.dtype}{list(c.shape)}" for c in [*f.columns, *f.films.values(), f.action]}
        for f in (old, new)
    )
    for key in [*there, *here]:
        if there.get(key) != here.get(key):
            return (
                f"{key!r} is {here.get(key, 'missing')} in this episode and "
                f"{there.get(key, 'missing')} in {root}; use another folder."
            )
    if old.is_marked != new.is_marked:
        there = "marks" if old.is_marked else "does not mark"
        return f"{root} {there} the steps that a person chose, unlike this episode; use another."
    return f"The arrays of this episode are named otherwise than those in {root}."
