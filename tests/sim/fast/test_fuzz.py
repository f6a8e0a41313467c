"""Rubbish in, a finite picture out: with the kernel as it is, and with one that checks itself."""

from pathlib import Path

import pytest
from fuzz_kernel import fuzz
from sanitizers import fuzz_sanitized

from maniple.sim.fast.renderer import compiled_library

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "src/maniple/sim/fast"


@pytest.mark.skipif(compiled_library() is None, reason="the kernel was not compiled")
def test_rubbish_gives_finite_pictures():
    fuzz(compiled_library(), 1500, seed=17)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("seed", [1, 2])
def test_no_access_is_out_of_bounds(tmp_path, seed):
    """Fifty thousand scenes each under AddressSanitizer and UndefinedBehaviorSanitizer."""
    parts = [SOURCES / name for name in ("kernel_avx2.cc", "kernel_base.cc", "render.cc")]
    script = HERE / "fuzz_kernel.py"
    fuzz_sanitized(parts, "float-divide-by-zero", script, 50_000, seed, tmp_path)
