"""The meta folder: what a dataset holds, written once for all its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from maniple.core.atomic import write_text
from maniple.core.checked_file import SETTINGS_BYTES, BadFile, read_json_table
from maniple.core.errors import BadConfig
from maniple.core.optional import require
from maniple.data.lerobot import paths
from maniple.data.lerobot.stats import Stats, flat
from maniple.data.lerobot.table import read_whole, write_table

VERSION = "v3.0"
FACTS: dict[str, type | tuple[type, ...]] = {
    "codebase_version": str,
    "features": dict,
    "total_episodes": int,
    "fps": (int, float),
    "data_path": str,
}
"""What info.json must say, and as what."""
# LeRobot's own limits, for those who go on writing with its tools; our files hold an episode each.
LIMITS = {"data_files_size_in_mb": 100, "video_files_size_in_mb": 200}


def episode_row(
    episode: int,
    number: int,
    first_row: int,
    rows: int,
    task: str,
    films: list[str],
    fps: int,
    stats: Stats,
    ending: dict[str, Any],
) -> dict[str, Any]:
    """Return the facts about one episode, which lies in the number-th file set."""
    place = paths.place(number)
    row: dict[str, Any] = {"episode_index": episode, "tasks": [task], "length": rows}
    row |= {f"data/{name}": value for name, value in place.items()}
    row |= {"dataset_from_index": first_row, "dataset_to_index": first_row + rows}
    for key in films:
        row |= {f"videos/{key}/{name}": value for name, value in place.items()}
        row[f"videos/{key}/from_timestamp"] = 0.0
        row[f"videos/{key}/to_timestamp"] = rows / fps
    row |= flat(stats)
    row |= {f"meta/episodes/{name}": value for name, value in place.items()}
    return row | ending


def write_episode_row(root: Path, number: int, row: dict[str, Any]) -> None:
    """Write the facts about one episode."""
    table = require("pyarrow").Table.from_pylist([row])
    write_table(paths.episodes_file(root, number), table)


def read_episode_rows(root: Path, with_stats: bool = False) -> list[dict[str, Any]]:
    """Read the facts about all episodes, in order; their statistics are most of it."""
    rows = []
    for path in paths.numbered(root / "meta/episodes", "parquet").values():
        rows += read_whole(path, root, without="" if with_stats else "stats/").to_pylist()
    return sorted(rows, key=lambda row: row["episode_index"])


def write_tasks(root: Path, tasks: list[str]) -> None:
    """Write the sentences, as pandas writes a table that has them as its index."""
    pa = require("pyarrow")
    table = pa.table({"task_index": pa.array(range(len(tasks)), pa.int64()), "task": tasks})
    column = lambda name, kind, numpy: {  # noqa: E731
        "name": name,
        "field_name": name,
        "pandas_type": kind,
        "numpy_type": numpy,
        "metadata": None,
    }
    about = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [column("task_index", "int64", "int64"), column("task", "unicode", "object")],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    write_table(
        root / paths.TASKS_PATH, table.replace_schema_metadata({b"pandas": json.dumps(about)})
    )


def read_tasks(root: Path) -> list[str]:
    """Read the sentences in the order of their numbers."""
    table = read_whole(root / paths.TASKS_PATH, root)
    names = [name for name in table.column_names if name != "task_index"]
    rows = zip(table["task_index"].to_pylist(), table[names[0]].to_pylist(), strict=True)
    return [task for _, task in sorted(rows)]


def write_stats(root: Path, stats: Stats) -> None:
    """Write the statistics of all episodes together."""
    _write_json(root / paths.STATS_PATH, stats)


def read_stats(root: Path) -> Stats:
    """Read the statistics of all episodes together; nothing where they cannot be read."""
    try:
        return read_json_table(root / paths.STATS_PATH)
    except BadFile:
        return {}


def make_info(
    fps: int, robot: str, features: dict[str, Any], episodes: int, frames: int, tasks: int
) -> dict[str, Any]:
    """Return the facts about the whole dataset."""
    return {
        "codebase_version": VERSION,
        "robot_type": robot,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": tasks,
        "chunks_size": paths.CHUNK_FILES,
        **LIMITS,
        "fps": fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": paths.DATA_PATH,
        "video_path": paths.VIDEO_PATH
        if any(f["dtype"] == "video" for f in features.values())
        else None,
        "features": features,
    }


def write_info(root: Path, info: dict[str, Any]) -> None:
    """Write the facts about the whole dataset: the last file of every change."""
    _write_json(root / paths.INFO_PATH, info)


def read_info(root: Path) -> dict[str, Any]:
    """Read the facts about the whole dataset."""
    path = root / paths.INFO_PATH
    if not path.is_file():
        raise BadConfig(f"{root} is no dataset: it has no {paths.INFO_PATH}.{_hint(root)}")
    try:
        info = read_json_table(path, SETTINGS_BYTES)
    except BadFile as error:
        raise BadFile(f"{error} Type: maniple data repair {root}") from None
    for name, kinds in FACTS.items():
        if not isinstance(info.get(name), kinds):
            raise BadFile(
                f"{path} says {info.get(name)!r} of {name!r}. Type: maniple data repair {root}"
            )
    version = info["codebase_version"]
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        raise BadConfig(
            f"{root} is of format {version}; this reads {VERSION}. LeRobot converts older ones: "
            "python -m lerobot.datasets.v30.convert_dataset_v21_to_v30."
        )
    return info


def write_origin(root: Path, origin: dict[str, str]) -> None:
    """Write what LeRobot has no place for."""
    _write_json(root / paths.ORIGIN_PATH, origin)


def read_origin(root: Path) -> dict[str, str]:
    """Read it back; nothing where it cannot be read."""
    try:
        found = read_json_table(root / paths.ORIGIN_PATH, SETTINGS_BYTES)
    except BadFile:
        return {}
    return {str(k): str(v) for k, v in found.items()}


def _write_json(path: Path, content: Any) -> None:
    write_text(path, json.dumps(content, indent=4, ensure_ascii=False))


def _hint(root: Path) -> str:
    if not root.exists():
        return " There is nothing at that place."
    if (root / "data").is_dir():
        return f" A killed run may have left it so. Type: maniple data repair {root}"
    inner = sorted(p.parent.parent for p in root.glob(f"*/{paths.INFO_PATH}"))
    return f" Did you mean {inner[0]}?" if inner else ""
