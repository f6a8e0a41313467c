"""Demonstrations of RLBench's own planner, on the real simulator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from maniple.cli.demos.record import Options

DEMO_TIMEOUT_S = 300.0
"""A demonstration takes seconds, and minutes where the planner looks for a path in vain."""


def run(options: Options) -> dict[str, Any]:
    """Have every environment demonstrate in turn, until there are enough."""
    from maniple.cli.demos.record import check, tell
    from maniple.cli.progress import bar
    from maniple.core.errors import BadConfig
    from maniple.data.lerobot.write import DatasetWriter
    from maniple.registry import make_vec

    check(options)
    if options.keyboard:
        raise BadConfig("--keyboard drives an arm on MuJoCo; leave --backend rlbench out.")
    size = options.image_size
    cameras = options.cameras or (("front", "wrist") if size else ())
    pictures = {"cameras": cameras, "image_size": size or (128, 128)} if cameras else {}
    rows = min(options.num_envs, options.episodes)
    start = time.perf_counter()
    envs = make_vec(
        options.task, rows, backend="rlbench", step_timeout_s=DEMO_TIMEOUT_S, **pictures
    )
    recorded = 0
    try:
        with (
            DatasetWriter(options.out, envs.metadata["render_fps"], "panda") as writer,
            bar(options.task, options.episodes, not options.json) as tick,
        ):
            for episode in _episodes(envs, options.seed or 0):
                writer.add(episode)
                recorded += 1
                if tick:
                    tick(1)
                if recorded == options.episodes:
                    break
            answer = {
                "task": options.task,
                "out": str(options.out),
                "recorded": recorded,
                "played": recorded,
                "solved": recorded,
                "episodes": writer.episodes,
                "frames": writer.frames,
                "seconds": round(time.perf_counter() - start, 2),
            }
    finally:
        envs.close()
    tell(answer, options)
    return answer


def _episodes(envs: Any, seed: int) -> Iterator[Any]:
    """Yield episodes without end. RLBench resets by itself, so that none has a seed of its own."""
    from maniple.data.episode import Episode

    while True:
        envs.reset(seed=seed)
        seed += envs.num_envs
        for demos in envs.call("live_demos", 1):
            for demo in demos:
                # RLBench gives out a demonstration only if it solved the task.
                reward = np.zeros(len(demo["action"]), np.float32)
                reward[-1] = 1.0
                yield Episode(
                    demo["obs"], demo["action"], reward, True, False, True, task=demo["sentence"]
                )
