"""Measure the way from a wheel to a live page: an empty environment, pip, 'maniple view'.

Run it twice: the first time fills pip's cache. 'make wheel' makes the wheel.

    python bench/first_page.py dist/maniple-*.whl
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PORT = 8631
PATIENCE_S = 120.0


def main(argv: Sequence[str] | None = None) -> int:
    """Install, start, ask for the page; tell the times and the largest packages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--extra", default="view")
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--no-compile", action="store_true", help="pip compiles nothing ahead")
    parser.add_argument("--most-seconds", type=float, default=None, help="fail beyond this")
    parser.add_argument("--most-mb", type=float, default=None, help="fail beyond this")
    options = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="first-page-"))
    try:
        told = measure(
            options.wheel.resolve(), folder, options.extra, options.port, options.no_compile
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(told, indent=2))
    too_slow = options.most_seconds is not None and told["seconds"] > options.most_seconds
    too_large = options.most_mb is not None and told["mb"] > options.most_mb
    return int(too_slow or too_large)


def measure(wheel: Path, folder: Path, extra: str, port: int, no_compile: bool) -> dict:
    """Return seconds of every step, and megabytes of what was installed."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise SystemExit(f"Something else listens at port {port}: name another --port.")
    marks = [time.perf_counter()]
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    marks.append(time.perf_counter())
    (packages,) = folder.glob("env/lib/python*/site-packages")
    empty = sum(package_sizes(packages).values())
    python = folder / "env" / "bin" / "python"
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    words += ["--no-compile"] if no_compile else []
    subprocess.run([*words, "-c", ROOT / "constraints.txt", f"{wheel}[{extra}]"], check=True)
    marks.append(time.perf_counter())
    command = [python.with_name("maniple"), "view", "--port", str(port), "--num-envs", "4"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as view:
        try:
            wait_for(f"http://127.0.0.1:{port}/", view)
            marks.append(time.perf_counter())
        finally:
            view.terminate()
    sizes = package_sizes(packages)
    names = ("venv", "pip", "page")
    steps = {n: round(b - a, 1) for n, a, b in zip(names, marks, marks[1:], strict=False)}
    largest = dict(sorted(sizes.items(), key=lambda item: -item[1])[:10])
    return {
        "seconds": round(marks[-1] - marks[0], 1),
        "steps": steps,
        "mb": round(sum(sizes.values())),
        "mb_of_the_empty_venv": round(empty),
        "largest_mb": {name: round(mb) for name, mb in largest.items()},
    }


def wait_for(url: str, view: subprocess.Popen) -> None:
    """Ask for the page until it is there."""
    end = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < end:
        if view.poll() is not None:
            raise SystemExit(f"maniple view ended with code {view.returncode}.")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if b"<title>viser" in answer.read(100_000).lower():
                    return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"No page at {url} after {PATIENCE_S:g} seconds.")


def package_sizes(folder: Path) -> dict[str, float]:
    """Return the megabytes on disk of everything that was installed, as du counts them."""
    return {
        path.name: sum(f.lstat().st_blocks * 512 for f in [path, *path.rglob("*")]) / 2**20
        for path in folder.iterdir()
    }


if __name__ == "__main__":
    sys.exit(main())
