"""Demonstrations that RLBench has stored, made into a dataset of ours."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from maniple.cli.demos.record import Options


def run(options: Options) -> dict[str, Any]:
    """Read them without RLBench, and without running what their pickles name."""
    from maniple.cli.demos.record import check, tell
    from maniple.cli.progress import bar
    from maniple.data.episode import Episode
    from maniple.data.lerobot.write import DatasetWriter
    from maniple.envs.rlbench.config import RLBenchConfig
    from maniple.envs.rlbench.contract import FPS
    from maniple.envs.rlbench.stored import find_demos, load_demo, picture_size

    check(options)
    assert options.stored is not None
    demos = find_demos(options.stored, options.task)[: options.episodes]
    size = picture_size(demos[0], options.cameras)
    config = RLBenchConfig(options.task, cameras=options.cameras, image_size=size)
    start = time.perf_counter()
    with (
        DatasetWriter(options.out, FPS, config.robot_setup) as writer,
        bar(options.task, len(demos), not options.json) as tick,
    ):
        for demo in demos:
            found = load_demo(demo, config)
            reward = np.zeros(len(found["action"]), np.float32)
            # RLBench stores a demonstration only if it solved the task.
            reward[-1] = 1.0
            sentence = found["sentence"]
            writer.add(
                Episode(found["obs"], found["action"], reward, True, False, True, task=sentence)
            )
            if tick:
                tick(1)
        answer = {
            "task": options.task,
            "out": str(options.out),
            "recorded": len(demos),
            "played": len(demos),
            "solved": len(demos),
            "episodes": writer.episodes,
            "frames": writer.frames,
            "seconds": round(time.perf_counter() - start, 2),
        }
    tell(answer, options)
    return answer
