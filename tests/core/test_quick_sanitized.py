"""The C file, built with the sanitizers of addresses and undefined behaviour, and fuzzed."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src/maniple/core/_quick.c"
CHECKS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-shared", "-fPIC", "-g", "-O1", *CHECKS]


def libasan():
    if shutil.which("gcc") is None:
        return None
    words = ["gcc", "-print-file-name=libasan.so"]
    path = Path(subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip())
    return path if path.is_absolute() and path.exists() else None


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    if libasan() is None:
        pytest.skip("gcc has no libasan here")
    path = tmp_path_factory.mktemp("quick") / "_quick.so"
    include = sysconfig.get_path("include")
    subprocess.run(["gcc", *FLAGS, f"-I{include}", str(SOURCE), "-o", str(path)], check=True)
    return path


def run(build, *words):
    environment = os.environ | {
        "LD_PRELOAD": str(libasan()),
        # Python itself leaves memory to the kernel; its own allocator would hide small overruns.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        "PYTHONMALLOC": "malloc",
    }
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_read_or_written_elsewhere(build, seed):
    done = run(build, str(HERE / "fuzz_quick.py"), str(build), str(seed), "4000")
    assert done.returncode == 0 and done.stdout == "fuzzed\n", done.stderr[-4000:]


@pytest.mark.slow
def test_the_sanitizer_is_awake(build, tmp_path):
    """A library that overruns its buffer is found out, or the test above proves nothing."""
    source, library = tmp_path / "bad.c", tmp_path / "bad.so"
    source.write_text("#include <stdlib.h>\nint bad(int n) { char *p = malloc(n); return p[n]; }\n")
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(library)], check=True)
    done = run(build, "-c", f"import ctypes; ctypes.CDLL({str(library)!r}).bad(8)")
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr
