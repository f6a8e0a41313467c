"""Demonstrations of RLBench's own planner, on the real simulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.cli.demos.record import Options

DEMO_TIMEOUT_S = 300.0
"""A demonstration takes seconds, or minutes where the planner finds no path."""


def run(options: Options) -> dict[str, Any]:
    """Let all environments demonstrate, again and again, until there are enough episodes."""
    from maniple.cli.demos.dataset import write_dataset
    from maniple.core.errors import BadConfig
    from maniple.registry import make_vec

    if options.keyboard:
        raise BadConfig("--keyboard drives an arm on MuJoCo; leave --backend rlbench out.")
    size = options.image_size
    cameras = options.cameras or (("front", "wrist") if size else ())
    pictures = {"cameras": cameras, "image_size": size or (128, 128)} if cameras else {}
    settings = {"backend": "rlbench", "step_timeout_s": DEMO_TIMEOUT_S, **pictures}
    rows = min(options.num_envs, options.episodes)
    with closing(make_vec(options.task, rows, **settings)) as envs:
        episodes = islice(_episodes(envs, options.seed or 0), options.episodes)
        fps = envs.metadata["render_fps"]
        return write_dataset(options, fps, "panda", episodes, options.episodes)


def _episodes(envs: Any, seed: int) -> Iterator[Any]:
    """Yield episodes without end, each from a seed of its own."""
    from maniple.cli.demos.dataset import rlbench_episode

    while True:
        envs.reset(seed=seed)
        seed += envs.num_envs
        for demos in envs.call("live_demos", 1):
            for demo in demos:
                yield rlbench_episode(demo)
