"""Keep a Ray head running while somebody learns, and end it with everything that it started.

It is a process of its own, so that actors outlive a killed learner; it ends when it is told to,
or when no learner has given a sign of life for a while.
"""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

from maniple.core.child import start_child

PR_SET_CHILD_SUBREAPER = 36
OBJECT_STORE_BYTES = 256 * 2**20
WITHOUT_CLIENT_SERVER = (
    "import ray.scripts.scripts as scripts; "
    "scripts.get_ray_client_dependency_error = lambda: 'off'; "
    "scripts.main()"
)
"""Start Ray without the server of its thin client, which no flag switches off."""


def main(ip: str, port: str, beat: str, patience_s: str) -> int:
    """Run until told to stop, or until the file `beat` has not been touched for too long."""
    # What Ray starts in the background becomes our child when its own parent ends.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ray = start_child(
        [
            sys.executable, "-P", "-c", WITHOUT_CLIENT_SERVER, "start", "--head", "--block",
            f"--node-ip-address={ip}", f"--port={port}", "--include-dashboard=false",
            "--disable-usage-stats", f"--object-store-memory={OBJECT_STORE_BYTES}",
        ],
        stdin=subprocess.DEVNULL,
        signum=signal.SIGTERM,
    )  # fmt: skip
    try:
        while ray.poll() is None and not _is_stale(Path(beat), float(patience_s)):
            time.sleep(0.5)
        return ray.returncode or 0
    finally:
        end_children()


def end_children() -> None:
    """End every process that descends from this one: politely, then not."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        _tell(child, signal.SIGTERM)
    _, alive = psutil.wait_procs(children, timeout=8)
    for child in alive + psutil.Process().children(recursive=True):
        _tell(child, signal.SIGKILL)
    psutil.wait_procs(alive, timeout=2)


def _tell(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _is_stale(beat: Path, patience_s: float) -> bool:
    try:
        return time.time() - beat.stat().st_mtime > patience_s
    except FileNotFoundError:
        return True


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
