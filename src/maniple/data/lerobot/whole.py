"""Write a file that is either there and whole, or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

PART = ".part"


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Have `write` fill a file under a passing name, bring it to the disk, and give it its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    write(part)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Without this a power cut may forget the new name.
        os.fsync(folder)
    finally:
        os.close(folder)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file in one piece."""
    text = json.dumps(content, indent=4, ensure_ascii=False)
    write_whole(path, lambda part: _write_text(part, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
