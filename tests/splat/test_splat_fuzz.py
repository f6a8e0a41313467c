"""Rubbish in, a finite depth out: with the rasteriser as it is, and with one that checks itself."""

import subprocess
import sys
from pathlib import Path

import pytest
from splat_fuzz_kernel import fuzz

from maniple.splat.raster import compiled_library

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src/maniple"
PARTS = ("kernel_avx2.cc", "kernel_base.cc", "raster.cc")


@pytest.mark.skipif(compiled_library() is None, reason="it was not compiled")
def test_rubbish_gives_pictures():
    fuzz(compiled_library(), 300, seed=17)


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("seed", [1, 2])
def test_no_access_is_out_of_bounds(tmp_path, seed):
    """Five thousand scenes each under AddressSanitizer and UndefinedBehaviorSanitizer."""
    library = tmp_path / "raster.so"
    built = subprocess.run(
        ["g++", "-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-fno-omit-frame-pointer",
         "-fsanitize=address,undefined", "-fno-sanitize=float-divide-by-zero,float-cast-overflow",
         "-fno-sanitize-recover=undefined", "-Wno-psabi", f"-I{SOURCES / 'sim/kernel'}",
         *(str(SOURCES / "splat" / name) for name in PARTS),
         "-o", str(library)],
        capture_output=True, text=True,
    )  # fmt: skip
    if built.returncode:
        pytest.skip(f"no sanitizers here: {built.stderr[-200:]}")
    preload = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True
    ).stdout.strip()
    done = subprocess.run(
        [sys.executable, str(HERE / "splat_fuzz_kernel.py"), str(library), "5000", str(seed)],
        capture_output=True, text=True, timeout=1500,
        env={"LD_PRELOAD": preload, "ASAN_OPTIONS": "detect_leaks=0", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-2000:]
