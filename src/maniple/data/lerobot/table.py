"""The table of an episode: a row per action."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from maniple.core.atomic import replacing
from maniple.core.errors import BadConfig, one_line
from maniple.core.optional import require
from maniple.data.episode import Episode
from maniple.data.lerobot.features import INTERVENTION, NEXT, STATE, Column, Features

ABOUT = b"maniple"
"""Key of the table's own facts, from which the dataset's can be made again."""

UNREADABLE: tuple[type[Exception], ...] = (
    LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError, EOFError,
    NotImplementedError, AssertionError, RecursionError, MemoryError, FFmpegError,
)  # fmt: skip
"""What readers of tables and films raise where something is not as it should be."""


def to_table(episode: Episode, features: Features, fps: int, about: dict[str, Any]) -> Any:
    """Return the table of an episode, numbered as if it were the dataset's only one."""
    pa = require("pyarrow")
    steps = len(episode)
    columns: dict[str, Any] = {}
    for column in features.columns:
        seen = _stored(episode, features, column)
        columns[column.key] = _arrow(seen[:-1], column)
        columns[NEXT + column.key] = _arrow(seen[1:], column)
    columns["action"] = _arrow(episode.action, features.action)
    is_last = np.arange(steps) == steps - 1
    flags = {
        "next.done": is_last,
        "next.success": is_last & episode.success,
        "next.terminated": is_last & episode.terminated,
        "next.truncated": is_last & episode.truncated,
    }
    columns["next.reward"] = pa.array(episode.reward)
    columns |= {key: pa.array(flag) for key, flag in flags.items()}
    if episode.intervention is not None:
        columns[INTERVENTION] = pa.array(episode.intervention)
    columns["episode_seed"] = _constant(episode.seed, steps)
    columns["timestamp"] = pa.array((np.arange(steps) / fps).astype(np.float32))
    columns["frame_index"] = pa.array(np.arange(steps, dtype=np.int64))
    columns["index"] = columns["frame_index"]
    columns["episode_index"] = columns["task_index"] = _constant(0, steps)
    return pa.table(columns).replace_schema_metadata({ABOUT: json.dumps(about).encode()})


def numbered(table: Any, episode: int, first_row: int, task: int) -> Any:
    """Return a table with its place in the dataset filled in."""
    pa = require("pyarrow")
    rows = table.num_rows
    numbers = {
        "index": pa.array(np.arange(first_row, first_row + rows, dtype=np.int64)),
        "episode_index": _constant(episode, rows),
        "task_index": _constant(task, rows),
    }
    for key, values in numbers.items():
        table = table.set_column(table.schema.get_field_index(key), key, values)
    return table


def about_of(table: Any) -> dict[str, Any] | None:
    """Return the table's own facts; None where another program wrote it."""
    raw = (table.schema.metadata or {}).get(ABOUT)
    return None if raw is None else json.loads(raw)


def write_table(path: Path, table: Any) -> None:
    """Write a parquet file in one piece."""
    pq = require("pyarrow.parquet")
    with replacing(path) as part:
        pq.write_table(table, part, compression="snappy")


def read_table(path: Path, columns: list[str] | None = None, without: str = "") -> Any:
    """Read a parquet file: all of it, some columns, or those that do not begin with a word."""
    with require("pyarrow.parquet").ParquetFile(path) as file:
        if without:
            columns = [n for n in file.schema_arrow.names if not n.startswith(without)]
        # One thread: to start more costs more than such a small file.
        return file.read(columns=columns, use_threads=False)


def read_whole(path: Path, root: Path, without: str = "") -> Any:
    """Read a file of a dataset that must be whole.

    Raises:
        BadConfig: It is not; the error says what mends it.
    """
    try:
        return read_table(path, without=without)
    except UNREADABLE as error:
        raise BadConfig(
            f"{path} cannot be read: {one_line(error)}. Type: maniple data repair {root}"
        ) from None


def seen(table: Any, features: Features, is_next: bool = False) -> dict[str, NDArray]:
    """Return the arrays of the observation that are in a table, by name."""
    before = NEXT if is_next else ""
    found = {}
    if features.packed:
        state = numbers(table, before + STATE, features.columns[0])
        start = 0
        for name, shape in features.packed.items():
            stop = start + prod(shape)
            found[name] = state[:, start:stop].reshape(len(state), *shape)
            start = stop
    for name, column in features.single.items():
        found[name] = numbers(table, before + column.key, column)
    return found


def numbers(table: Any, key: str, column: Column) -> NDArray:
    """Return a column as an array, (rows, *shape)."""
    values = table.column(key).combine_chunks()
    while not _is_flat(values.type):
        values = values.flatten()
    array = values.to_numpy(zero_copy_only=False).astype(column.dtype, copy=False)
    return array.reshape(table.num_rows, *column.shape)


def _stored(episode: Episode, features: Features, column: Column) -> NDArray:
    if column.key != STATE or not features.packed:
        name = next(n for n, c in features.single.items() if c.key == column.key)
        return episode.obs[name]
    rows = len(episode) + 1
    return np.concatenate([episode.obs[n].reshape(rows, -1) for n in features.packed], axis=1)


def _arrow(array: NDArray, column: Column) -> Any:
    """Lay (rows, *shape) out as LeRobot does: plain, a list of fixed length, or nested lists."""
    pa = require("pyarrow")
    values = pa.array(np.ascontiguousarray(array).reshape(-1))
    shape = column.shape
    if shape in ((), (1,)):
        return values
    if len(shape) == 1:
        return pa.FixedSizeListArray.from_arrays(values, shape[0])
    for length in reversed(shape):
        offsets = np.arange(0, len(values) + 1, length, dtype=np.int32)
        values = pa.ListArray.from_arrays(pa.array(offsets), values)
    return values


def _constant(value: int, rows: int) -> Any:
    return require("pyarrow").array(np.full(rows, value, np.int64))


def _is_flat(kind: Any) -> bool:
    types = require("pyarrow.types")
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return not is_list
