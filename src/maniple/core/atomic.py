"""Write a file that is either complete or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PART = ".part"
"""Ending of a file that is being written. A killed writer leaves it; the next one overwrites it."""


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one piece; the one before it stays until this one is on the disk."""
    with replacing(path) as part:
        part.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file in one piece."""
    write_bytes(path, text.encode())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to, which becomes `path` at the end of the block.

    The folder is made if needed. Only one process may write the same path at a time.

    Raises:
        OSError: The disk does not take it; `path` is as it was, and the temporary file is gone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    try:
        yield part
        _sync(part)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk: without this a power cut may forget a new one."""
    _sync(path)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
