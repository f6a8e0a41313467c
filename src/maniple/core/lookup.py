"""Load what a table of strings names, when it is first used."""

from __future__ import annotations

import importlib
from typing import Any


def load(where: str) -> Any:
    """Import 'module:attribute'."""
    module, _, attribute = where.partition(":")
    return getattr(importlib.import_module(module), attribute)
