"""Say in one line that a place cannot be written, before and while something is made."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from maniple.core.errors import BadConfig, ManipleError, one_line


def make_folder(path: Path, flag: str) -> None:
    """Make a folder for results, or refuse the one that was named with a flag."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadConfig(f"{flag}: the folder {path} cannot be made: {error.strerror}.") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadConfig(f"{flag}: the folder {path} cannot be written to.")


def check_empty(path: Path, flag: str) -> None:
    """Refuse a place for results where something is already."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise BadConfig(f"{path} is not empty; choose another folder with {flag}.")


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Tell a full disk and its like in one line."""
    import av.error

    try:
        yield
    except ManipleError:
        raise
    except (OSError, av.error.FFmpegError) as error:
        raise ManipleError(f"Cannot write {what}: {one_line(error)}. Make room.") from error
