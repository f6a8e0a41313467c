"""Rubbish in, a finite depth out: with the rasteriser as it is, and with one that checks itself."""

from pathlib import Path

import pytest
from sanitizers import fuzz_sanitized
from splat_fuzz_kernel import fuzz

from maniple.splat.raster import compiled_library

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src/maniple/splat"


@pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
def test_rubbish_gives_pictures():
    fuzz(compiled_library(), 300, seed=17)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("seed", [1, 2])
def test_no_access_is_out_of_bounds(tmp_path, seed):
    """Five thousand scenes each under AddressSanitizer and UndefinedBehaviorSanitizer."""
    parts = [SOURCES / name for name in ("kernel_avx2.cc", "kernel_base.cc", "raster.cc")]
    unchecked = "float-divide-by-zero,float-cast-overflow"
    fuzz_sanitized(parts, unchecked, HERE / "splat_fuzz_kernel.py", 5000, seed, tmp_path)
