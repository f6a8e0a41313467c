"""Where every file of a dataset lies."""

from __future__ import annotations

import re
from pathlib import Path

from maniple.core.checked_file import BadFile, check_file

CHUNK_FILES = 1000
"""Files in a folder, at most."""

DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
INFO_PATH = "meta/info.json"
STATS_PATH = "meta/stats.json"
TASKS_PATH = "meta/tasks.parquet"
ORIGIN_PATH = "meta/maniple.json"
"""What LeRobot has no place for: which task and which renderer the episodes are of."""
FOLDERS = ("data", "videos", "meta")
TORN_FOLDER = "torn"
"""Where repair puts what it cannot use; nothing is ever deleted."""
STATES_FOLDER = "states"
"""Where a recording keeps the simulator's states, beside what LeRobot reads."""
LOCK_NAME = ".lock"

# Anything else between braces may be as long, or reach as far, as a stranger likes.
_TEMPLATE = re.compile(r"(?:[\w./-]|\{video_key\}|\{(?:chunk|file)_index(?::0?\dd)?\})+")
_NUMBERED = re.compile(r"chunk-(\d+)/file-(\d+)\.\w+$")


def place(number: int) -> dict[str, int]:
    """Return the chunk and the file of the number-th file set."""
    return {"chunk_index": number // CHUNK_FILES, "file_index": number % CHUNK_FILES}


def number_of(path: Path) -> int | None:
    """Return the number that a file's path tells, or None."""
    found = _NUMBERED.search(path.as_posix())
    return int(found[1]) * CHUNK_FILES + int(found[2]) if found else None


def data_file(root: Path, number: int) -> Path:
    """Return the table of the number-th file set."""
    return root / DATA_PATH.format(**place(number))


def video_file(root: Path, key: str, number: int) -> Path:
    """Return a film of the number-th file set."""
    return root / VIDEO_PATH.format(video_key=key, **place(number))


def filled(root: Path, template: object, place: dict[str, int], key: str = "") -> Path:
    """Return the file that a dataset's own template names.

    Raises:
        BadFile: The template asks for something else than numbers of chunk and file, or the file
            is not inside the dataset.
    """
    if not isinstance(template, str) or not _TEMPLATE.fullmatch(template):
        raise BadFile(f"{root} names its files {template!r}, which is not read; see {DATA_PATH}.")
    for name, number in place.items():
        if not isinstance(number, int) or not 0 <= number < 10**6:
            raise BadFile(f"{root} says {number!r} of {name!r}.")
    path = root / template.format(video_key=key, **place)
    check_file(path, inside=root)
    return path


def episodes_file(root: Path, number: int) -> Path:
    """Return the facts about the number-th file set."""
    return root / EPISODES_PATH.format(**place(number))


def numbered(folder: Path, ending: str) -> dict[int, Path]:
    """Return every chunk-000/file-000 file of a folder by its number, in order."""
    found = {number_of(path): path for path in folder.glob(f"chunk-*/file-*.{ending}")}
    return {number: found[number] for number in sorted(n for n in found if n is not None)}
