"""Read a file that anybody may have written: a regular one, not too large, of plain data."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import yaml

from maniple.core.errors import BadConfig, one_line

MEGABYTE = 2**20
SETTINGS_BYTES = MEGABYTE
"""Settings and facts that people read are far smaller."""
STATE_BYTES = 256 * MEGABYTE


class BadFile(BadConfig):
    """A file that is not what it should be."""


def read_bytes(path: str | Path, most_bytes: int, inside: Path | None = None) -> bytes:
    """Read a whole file.

    Args:
        path: A regular file; a pipe or a device would block, or never end.
        most_bytes: Larger files are refused before they are read.
        inside: A folder that the file must be in, links followed.

    Raises:
        BadFile: It is missing, something else than a file, too large, or elsewhere.
    """
    check_file(path, most_bytes, inside)
    try:
        # Another one may be there by now: a pipe would block.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}.") from None
    if len(data) > most_bytes:
        raise BadFile(f"{path} is larger than {most_bytes:,} bytes.")
    return data


def check_file(path: str | Path, most_bytes: int | None = None, inside: Path | None = None) -> int:
    """Return a file's size, or say in what it differs from a regular one."""
    if inside is not None and not Path(path).resolve().is_relative_to(inside.resolve()):
        raise BadFile(f"{path} is not inside {inside}.")
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        raise BadFile(f"{path} is missing.") from None
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be read: {one_line(error)}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise BadFile(f"{path} is {_kind(found.st_mode)}, not a file.")
    if most_bytes is not None and found.st_size > most_bytes:
        raise BadFile(f"{path} has {found.st_size:,} bytes; more than {most_bytes:,} are not read.")
    return found.st_size


def read_text(path: str | Path, most_bytes: int = SETTINGS_BYTES) -> str:
    """Read a UTF-8 file."""
    try:
        return read_bytes(path, most_bytes).decode()
    except UnicodeDecodeError as error:
        raise BadFile(f"{path} is not UTF-8: {error.reason} at byte {error.start}.") from None


def read_json(path: str | Path, most_bytes: int = STATE_BYTES) -> Any:
    """Read a JSON file."""
    text = read_text(path, most_bytes)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path} cannot be read as JSON: {one_line(error)}.") from None


def read_json_table(path: str | Path, most_bytes: int = STATE_BYTES) -> dict[str, Any]:
    """Read a JSON file that holds a table of names."""
    return _table(read_json(path, most_bytes), path)


def read_yaml_table(path: str | Path, most_bytes: int = SETTINGS_BYTES) -> dict[str, Any]:
    """Read a YAML file that holds a table of names; anchors and tags are refused."""
    text = read_text(path, most_bytes)
    try:
        found = yaml.load(text, Loader=_PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFile(f"{path} is not readable YAML: {one_line(error)}.") from None
    return _table(found, path)


class _PlainLoader(yaml.SafeLoader):
    """SafeLoader whose names are texts, without aliases, by which a few lines become gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.YAMLError(f"aliases (*{event.anchor}) are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        found = super().construct_mapping(node, deep)
        for key in found:
            if not isinstance(key, str):
                raise yaml.YAMLError(f"the name {key!r} is not a text")
        return found


def _table(found: Any, path: str | Path) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadFile(f"{path} should hold a table of names, not {type(found).__name__}.")
    return found


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
