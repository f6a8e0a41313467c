"""Measure the page: processor time per frame of sixteen arms, and how long keys wait."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from maniple.view.live import open_live
from maniple.view.server import PageServer
from maniple.view.subject import Subject

KEY = "away"


def main() -> None:
    """Measure both, on a quiet machine and with a busy process on each core."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="so101/LiftCube-v0")
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--keys", type=int, default=200)
    options = parser.parse_args()
    told = {"load_before": os.getloadavg()[0], "quiet": measured(options)}
    busy = [multiprocessing.Process(target=_work) for _ in range(os.cpu_count() or 1)]
    for process in busy:
        process.start()
    try:
        told["busy"] = measured(options)
    finally:
        for process in busy:
            process.terminate()
            process.join()
    print(json.dumps(told, indent=2))


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Open the page, press keys at random moments, tell frames and waits."""
    with tempfile.TemporaryDirectory(prefix="view-") as folder:
        return _measured(options, Path(folder))


def _measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    live = open_live(
        Subject("task", options.task), options.num_envs, {}, 0, lambda: PageServer(port=0),
        folder / "runs", folder / "recorded", "expert",
    )  # fmt: skip
    page, frames_ms, is_over = live.page, [], threading.Event()
    show = page.show_bodies

    def timed() -> None:
        begin = time.thread_time()
        show()
        frames_ms.append(1e3 * (time.thread_time() - begin))

    page.show_bodies = timed
    thread = threading.Thread(target=page.run, args=(lambda: not is_over.is_set(),))
    thread.start()
    try:
        for _ in range(options.keys):
            time.sleep(random.uniform(0.02, 0.08))
            page.pad.press(KEY, 1)
        time.sleep(0.5)
        waits = page.latency_ms()
    finally:
        is_over.set()
        thread.join()
        live.close()
    frames = sorted(frames_ms)
    return {
        "frame_cpu_ms": {"median": median(frames), "p95": frames[int(0.95 * len(frames))]},
        "frames": len(frames),
        "key_to_action_ms": waits,
    }


def _work() -> None:
    while True:
        sum(range(1000))


if __name__ == "__main__":
    main()
