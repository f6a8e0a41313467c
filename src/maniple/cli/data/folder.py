"""The option that every command about one dataset takes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Options:
    """Which dataset."""

    folder: tyro.conf.Positional[Path]
    """The dataset."""

    json: bool = False
    """Print one JSON object instead of lines."""
