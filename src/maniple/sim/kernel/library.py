"""Load a compiled kernel, in the variant that this processor can run."""

from __future__ import annotations

import ctypes
import functools
import os
from importlib import util
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from maniple.core.errors import BadConfig

WIDTHS = (8, 4)
"""Floats at a time: 8 needs AVX2 and FMA, 4 runs on any processor."""
HOW_TO_BUILD = "Type: apt-get install g++, then: pip install -e . (or install a wheel of maniple)"


def find_library(module: str) -> Path | None:
    """Return the file of an extension by its module's name, or None where it was not built."""
    package, _, name = module.rpartition(".")
    spec = util.find_spec(package)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        for suffix in EXTENSION_SUFFIXES:
            path = Path(folder) / f"{name}{suffix}"
            if path.is_file():
                return path
    return None


@functools.cache
def load_library(module: str) -> ctypes.CDLL | None:
    """Load an extension once; None where there is none, or where MANIPLE_PLAIN is set.

    It is called through ctypes, which lets other Python threads run meanwhile.
    """
    path = None if os.environ.get("MANIPLE_PLAIN") else find_library(module)
    if path is None:
        return None
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # Built for another machine, for example on a shared folder.
        return None


def best_width(library: ctypes.CDLL) -> int:
    """Return how many floats at a time the kernels compute here.

    MANIPLE_LANES=4 asks for the slower variant, to compare.
    """
    widest = int(library.kernel_widest())
    asked = os.environ.get("MANIPLE_LANES")
    if not asked:
        return widest
    if asked not in map(str, WIDTHS) or int(asked) > widest:
        raise BadConfig(
            f"MANIPLE_LANES is {asked!r}; this processor can do "
            f"{' or '.join(str(w) for w in WIDTHS if w <= widest)}."
        )
    return int(asked)
