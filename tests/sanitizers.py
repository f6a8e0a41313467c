"""Run a fuzz script on a kernel that is built with the sanitizers of addresses and behaviour."""

import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = Path(__file__).parents[1] / "src/maniple/sim/kernel"
FLAGS = (
    *("-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-fno-omit-frame-pointer", "-Wno-psabi"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
)


def fuzz_sanitized(
    sources: list[Path], unchecked: str, script: Path, count: int, seed: int, folder: Path
) -> None:
    """Draw `count` scenes; any access out of bounds fails.

    Args:
        sources: Of the library.
        unchecked: What is left out of the checks, as -fno-sanitize names it.
        script: Called with the library, the count and the seed; prints "ok" at its end.
        count: How many scenes.
        seed: Of the scenes.
        folder: Where the library goes.
    """
    library = folder / "sanitized.so"
    order = ["g++", *FLAGS, f"-fno-sanitize={unchecked}", f"-I{KERNEL}", *map(str, sources)]
    built = subprocess.run([*order, "-o", str(library)], capture_output=True, text=True)
    if built.returncode:
        pytest.skip(f"no sanitizers here: {built.stderr[-200:]}")
    runtime = subprocess.run(
        ["g++", "-print-file-name=libasan.so"], capture_output=True, text=True
    ).stdout.strip()
    done = subprocess.run(
        [sys.executable, str(script), str(library), str(count), str(seed)],
        capture_output=True, text=True, timeout=1500,
        env={"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0 and "ok" in done.stdout, done.stderr[-2000:]
