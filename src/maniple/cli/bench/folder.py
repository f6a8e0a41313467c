"""Make the folder that a benchmark writes to."""

from __future__ import annotations

from pathlib import Path

from maniple.core.errors import BadConfig


def made(path: Path) -> Path:
    """Return `path`, existing and writable, before anything is measured for it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadConfig(f"Cannot write to {path}: {error.strerror}. Give another --out.") from None
    return path
