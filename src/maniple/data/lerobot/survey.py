"""Look at every file of a dataset, and say which are whole."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maniple.core.atomic import PART
from maniple.core.errors import one_line
from maniple.data.lerobot import paths
from maniple.data.lerobot.features import NEXT, Features
from maniple.data.lerobot.film import film_frames
from maniple.data.lerobot.table import UNREADABLE, about_of, numbers, read_table


@dataclass
class FileSet:
    """The files of one episode of ours, and what is wrong with them."""

    number: int
    table: Path | None = None
    films: dict[str, Path] = field(default_factory=dict)
    rows: int = 0
    about: dict[str, Any] = field(default_factory=dict)
    place: tuple[int, int, int] = (0, 0, 0)
    """Episode, first row and task that the table tells."""
    faults: dict[Path, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether the episode can be used."""
        return not self.faults

    @property
    def files(self) -> list[Path]:
        """What there is of it."""
        return [*([self.table] if self.table else []), *self.films.values()]


def survey(root: Path) -> list[FileSet]:
    """Return every file set of ours in a folder, in order."""
    sets: dict[int, FileSet] = {}
    for number, path in paths.numbered(root / "data", "parquet").items():
        sets.setdefault(number, FileSet(number)).table = path
    for folder in sorted((root / "videos").glob("*/")):
        for number, path in paths.numbered(folder, "mp4").items():
            sets.setdefault(number, FileSet(number)).films[folder.name] = path
    found = [sets[number] for number in sorted(sets)]
    for files in found:
        _look(root, files)
    return found


def parts(root: Path) -> list[Path]:
    """Return every file that was being written when its writer ended."""
    found = []
    for folder, _, names in os.walk(root):
        if Path(folder).relative_to(root).parts[:1] != (paths.TORN_FOLDER,):
            found += [Path(folder) / name for name in names if name.endswith(PART)]
    return sorted(found)


def is_ours(root: Path) -> bool:
    """Tell whether any table of a folder was written by maniple, or there is none yet."""
    tables = list(paths.numbered(root / "data", "parquet").values())
    for path in tables:
        try:
            if about_of(read_table(path, columns=["index"])) is not None:
                return True
        except UNREADABLE:
            continue
    return not tables


def _look(root: Path, files: FileSet) -> None:
    if files.table is None:
        for path in files.films.values():
            files.faults[path] = "its table is missing"
        return
    try:
        fault = _look_at_table(files.table, files)
    except UNREADABLE as error:
        fault = f"it cannot be read: {one_line(error)}"
    if fault:
        files.faults[files.table] = fault
        return
    features = Features.from_info(files.about["features"])
    for film in features.films.values():
        path = paths.video_file(root, film.key, files.number)
        if fault := _look_at_film(path, files.rows + 1):
            files.faults[path] = fault


def _look_at_table(path: Path, files: FileSet) -> str:
    table = read_table(path)
    about = about_of(table)
    if about is None:
        return "it was not written by maniple"
    features = Features.from_info(about["features"])
    stored = {key for key, feature in about["features"].items() if feature["dtype"] != "video"}
    if missing := stored - set(table.column_names):
        return f"it lacks the column {sorted(missing)[0]!r}"
    if table.num_rows == 0:
        return "it has no rows"
    if table["frame_index"].to_pylist() != list(range(table.num_rows)):
        return "its rows are not one episode from its beginning"
    for column in features.columns:
        before, after = (numbers(table, k, column) for k in (column.key, NEXT + column.key))
        if not np.array_equal(before[1:], after[:-1], equal_nan=column.dtype[0] == "f"):
            return f"{column.key!r} does not follow from row to row"
    files.about, files.rows = about, table.num_rows
    first = table.slice(0, 1).to_pylist()[0]
    files.place = first["episode_index"], first["index"], first["task_index"]
    return ""


def _look_at_film(path: Path, frames: int) -> str:
    if not path.is_file():
        return "it is missing"
    try:
        found = film_frames(path)
    except UNREADABLE as error:
        return f"it cannot be read: {one_line(error)}"
    return "" if found == frames else f"it has {found} frames, not {frames}"
