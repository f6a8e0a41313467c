"""Write episodes to a dataset while they are played or read, and say how many there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from maniple.cli.demos.record import Options
    from maniple.data.demos import Tally
    from maniple.data.episode import Episode


def write_dataset(
    options: Options,
    fps: int,
    robot: str,
    episodes: Iterable[Episode],
    total: int,
    tally: Callable[[], Tally] | None = None,
    origin: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Write all episodes, print where they are, and return the answer of the verb.

    Args:
        options: Of 'maniple demos record'.
        fps: Steps per second of the environment.
        robot: The robot's name, for the dataset's metadata.
        episodes: Played or read one by one, while they are written; WindowClosed ends them.
        total: How many there will be, for the progress bar.
        origin: Where they come from, as `origin_of` tells it.
        tally: Returns how many were played and solved; None: every episode was, and is written.
    """
    from maniple.cli.demos.keyboard import WindowClosed
    from maniple.cli.progress import bar
    from maniple.data.demos import Tally
    from maniple.data.lerobot.write import DatasetWriter

    start = time.perf_counter()
    recorded = 0
    with (
        DatasetWriter(options.out, fps, robot, origin) as writer,
        bar(options.task, total, not options.json) as tick,
    ):
        try:
            for episode in episodes:
                writer.add(episode)
                recorded += 1
                if tick:
                    tick(1)
        except WindowClosed:
            pass
        played, solved = tally() if tally else Tally(recorded, recorded)
        answer = {
            "task": options.task,
            "out": str(options.out),
            "recorded": recorded,
            "played": played,
            "solved": solved,
            "episodes": writer.episodes,
            "frames": writer.frames,
            "seconds": round(time.perf_counter() - start, 2),
        }
    if not options.json:
        print(
            f"{recorded} episodes of {options.task} are in {options.out} "
            f"({played} played, {solved} solved, {answer['seconds']:.1f} s).\n"
            f"Look at them with: maniple demos info {options.out}"
        )
    return answer


def origin_of(task: str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Tell what is needed to play an episode again: the task, its control, who drew."""
    from maniple.registry import canonical

    named = {"control": metadata.get("arm_mode"), "renderer": metadata.get("renderer")}
    return {"task": canonical(task)} | {k: str(v) for k, v in named.items() if v}


def rlbench_episode(demo: dict[str, Any]) -> Episode:
    """Make an episode of a demonstration of RLBench, which keeps only those that solve the task."""
    from maniple.data.episode import NO_SEED, Episode

    reward = np.zeros(len(demo["action"]), np.float32)
    reward[-1] = 1.0
    seed = demo.get("seed")
    return Episode(
        demo["obs"],
        demo["action"],
        reward,
        terminated=True,
        truncated=False,
        success=True,
        seed=NO_SEED if seed is None else seed,
        task=demo["sentence"],
    )
