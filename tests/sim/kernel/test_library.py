"""Compiled parts: what is loaded was built from the sources that are here."""

import shutil
import tomllib
from pathlib import Path

import pytest

from maniple.sim.kernel.library import find_library

ROOT = Path(__file__).parents[3]
EXTENSIONS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"][
    "ext-modules"
]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler here")
@pytest.mark.parametrize("extension", EXTENSIONS, ids=lambda extension: extension["name"])
def test_it_is_as_new_as_its_sources(extension):
    """Extensions are optional: a source that does not compile would leave the old one in place."""
    built = find_library(extension["name"])
    assert built is not None
    sources = [ROOT / name for name in (*extension["sources"], *extension.get("depends", ()))]
    newer = [str(path) for path in sources if path.stat().st_mtime > built.stat().st_mtime]
    assert not newer, f"{built.name} was not built from {newer}. Type: pip install -e ."
