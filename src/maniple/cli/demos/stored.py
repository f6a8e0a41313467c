"""Demonstrations that RLBench has stored, made into a dataset of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.cli.demos.record import Options


def run(options: Options) -> dict[str, Any]:
    """Read them without RLBench, and without running what their pickles name."""
    from maniple.cli.demos.dataset import rlbench_episode, write_dataset
    from maniple.envs.rlbench.config import RLBenchConfig
    from maniple.envs.rlbench.contract import FPS
    from maniple.envs.rlbench.stored import find_demos, load_demo, picture_size

    assert options.stored is not None
    demos = find_demos(options.stored, options.task)[: options.episodes]
    size = picture_size(demos[0], options.cameras)
    config = RLBenchConfig(options.task, cameras=options.cameras, image_size=size)
    episodes = (rlbench_episode(load_demo(demo, config)) for demo in demos)
    return write_dataset(options, FPS, config.robot_setup, episodes, len(demos))
