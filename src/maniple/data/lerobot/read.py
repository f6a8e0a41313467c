"""Read episodes from a dataset, ours or another's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.checked_file import BadFile
from maniple.core.errors import BadConfig, ManipleError, one_line
from maniple.core.optional import require
from maniple.data.episode import NO_SEED, Episode
from maniple.data.lerobot import meta, paths
from maniple.data.lerobot.features import INTERVENTION, Features
from maniple.data.lerobot.film import read_film
from maniple.data.lerobot.table import UNREADABLE, numbers, read_whole, seen


class Dataset:
    """Episodes in a folder, read one by one.

    A dataset of another program lacks the final observation. There an episode that ended in an
    end state repeats its last one, which nobody looks at; any other loses its last action.

    Args:
        root: The dataset's folder.
        with_pictures: Decode the films; False leaves them out of the observations.
        picture_size: Height and width to which pictures are scaled; None: as they were stored.
    """

    def __init__(
        self,
        root: str | Path,
        with_pictures: bool = True,
        picture_size: tuple[int, int] | None = None,
    ) -> None:
        self.root = Path(root)
        self.info = meta.read_info(self.root)
        with _readable(self.root):
            self.features = Features.from_info(self.info["features"])
            self.rows = meta.read_episode_rows(self.root)
            self.tasks = meta.read_tasks(self.root)
        self._with_pictures, self._picture_size = with_pictures, picture_size
        self._last: tuple[Path, Any] | None = None
        self._begins: dict[str, dict[tuple[int, int], list[float]]] = {}
        """When episodes begin, by film: looked up once for each camera."""
        stated = self.info["total_episodes"]
        if len(self.rows) != stated:
            raise BadConfig(
                f"{self.root} names {stated} episodes and lists {len(self.rows)}. "
                f"Type: maniple data repair {self.root}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Episode]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, episode: int) -> Episode:
        if not 0 <= episode < len(self):
            raise IndexError(f"{self.root} has {len(self)} episodes; there is no {episode}.")
        with _readable(self.root):
            return self._episode(episode)

    def _episode(self, episode: int) -> Episode:
        table = self._table(episode)
        obs = seen(table, self.features)
        if self.features.has_next:
            last = seen(table.slice(table.num_rows - 1), self.features, is_next=True)
            obs = {name: np.concatenate([array, last[name]]) for name, array in obs.items()}
        if self._with_pictures:
            obs |= {name: self._frames(episode, name) for name in self.features.films}
        action = numbers(table, "action", self.features.action)
        end = _Ending(table)
        return _closed(obs, action, end, self.tasks[end.task])

    def _table(self, episode: int) -> Any:
        row = self.rows[episode]
        place = {name: row[f"data/{name}"] for name in ("chunk_index", "file_index")}
        path = paths.filled(self.root, self.info["data_path"], place)
        if self._last is None or self._last[0] != path:
            self._last = path, read_whole(path, self.root)
        table = self._last[1]
        # Ours have an episode per file; LeRobot's have many.
        if row["length"] != table.num_rows:
            equal = require("pyarrow.compute").equal
            table = table.filter(equal(table["episode_index"], episode))
        if row["length"] != table.num_rows:
            raise BadConfig(
                f"{path} has {table.num_rows} rows of episode {episode}, not {row['length']}. "
                f"Type: maniple data check {self.root}"
            )
        return table

    def _frames(self, episode: int, name: str) -> NDArray[np.uint8]:
        key, row = self.features.films[name].key, self.rows[episode]
        place = {n: row[f"videos/{key}/{n}"] for n in ("chunk_index", "file_index")}
        path = paths.filled(self.root, self.info.get("video_path"), place, key)
        fps = self.info["fps"]
        start = round(row[f"videos/{key}/from_timestamp"] * fps)
        try:
            # Our films show the final observation too, after the last row's.
            count = min(row["length"] + 1, self._room(row, key))
            frames = read_film(path, start, count, fps, self._picture_size)
        except UNREADABLE as error:
            raise BadConfig(
                f"{path} cannot be read: {one_line(error)}. Type: maniple data check {self.root}"
            ) from None
        if len(frames) < row["length"]:
            raise BadConfig(
                f"{path} has {len(frames)} frames for {row['length']} actions. "
                f"Type: maniple data check {self.root}"
            )
        return frames

    def _room(self, row: dict[str, Any], key: str) -> int:
        """Count the frames until another episode begins in the same film."""
        if not self.features.has_next:
            return row["length"]
        if key not in self._begins:
            found: dict[tuple[int, int], list[float]] = {}
            for other in self.rows:
                found.setdefault(_film_of(other, key), []).append(_begin(other, key))
            self._begins[key] = found
        start = _begin(row, key)
        later = [time for time in self._begins[key][_film_of(row, key)] if time > start]
        return round((min(later) - start) * self.info["fps"]) if later else row["length"] + 1


@contextmanager
def _readable(root: Path) -> Iterator[None]:
    """Turn what goes wrong in a dataset that somebody wrote otherwise into one line."""
    try:
        yield
    except ManipleError:
        raise
    except UNREADABLE as error:
        raise BadFile(
            f"{root} is not laid out as LeRobot's datasets are ({type(error).__name__}: "
            f"{one_line(error)}). "
            f"Type: maniple data check {root}"
        ) from error


def _film_of(row: dict[str, Any], key: str) -> tuple[int, int]:
    return row[f"videos/{key}/chunk_index"], row[f"videos/{key}/file_index"]


def _begin(row: dict[str, Any], key: str) -> float:
    return row[f"videos/{key}/from_timestamp"]


class _Ending:
    """Rewards and flags of a table, with what another's dataset may lack."""

    def __init__(self, table: Any) -> None:
        rows, names = table.num_rows, set(table.column_names)
        last = table.slice(rows - 1).to_pylist()[0]
        flag = lambda name: bool(last[name]) if name in names else False  # noqa: E731
        self.reward = np.zeros(rows, np.float32)
        if "next.reward" in names:
            self.reward = table["next.reward"].to_numpy().astype(np.float32)
        self.success = flag("next.success")
        # Without a flag of its own, an end is an end state where the task was solved.
        self.terminated = flag("next.terminated" if "next.terminated" in names else "next.success")
        self.truncated = flag("next.truncated") or not self.terminated
        self.seed = int(last["episode_seed"]) if "episode_seed" in names else NO_SEED
        self.marks = None
        if INTERVENTION in names:
            self.marks = table[INTERVENTION].to_numpy().astype(np.bool_)
        self.task = int(last["task_index"])


def _closed(obs: dict[str, NDArray], action: NDArray, end: _Ending, task: str) -> Episode:
    """Give every array T + 1 rows, or take the last action away."""
    steps, reward, marks = len(action), end.reward, end.marks
    if any(len(array) == steps for array in obs.values()):
        if end.terminated:
            obs = {
                name: array if len(array) > steps else np.concatenate([array, array[-1:]])
                for name, array in obs.items()
            }
        else:
            obs = {name: array[:steps] for name, array in obs.items()}
            action, reward = action[:-1], reward[:-1]
            marks = None if marks is None else marks[:-1]
    return Episode(
        obs, action, reward, end.terminated, end.truncated, end.success, end.seed, task, marks
    )
