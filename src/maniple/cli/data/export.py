"""maniple data export: some episodes of a dataset, elsewhere or as plain numpy files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro


@dataclass(frozen=True)
class Options:
    """What to copy, and where to."""

    folder: tyro.conf.Positional[Path]
    """A dataset, or a run's folder with datasets in it."""

    out: Path
    """The new folder."""

    format: Literal["lerobot", "npz"] = "lerobot"
    """lerobot (a dataset) or npz (a numpy file per episode)."""

    episodes: tuple[int, ...] = ()
    """Numbers of the episodes; none given means all."""

    only_successes: bool = False
    """Leave out episodes in which the task was not solved."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Read, choose, write."""
    from maniple.cli.out import check_empty
    from maniple.core.errors import BadConfig
    from maniple.data.demos import datasets_in
    from maniple.data.lerobot.read import Dataset

    check_empty(options.out, "--out")
    datasets = [Dataset(root) for root in datasets_in(options.folder)]
    count = sum(len(dataset) for dataset in datasets)
    for number in options.episodes:
        if not 0 <= number < count:
            raise BadConfig(f"There is no episode {number}; {options.folder} has 0 to {count - 1}.")
    write = _write_npz if options.format == "npz" else _write_dataset
    written = write(datasets, options)
    answer = {
        "out": str(options.out), "format": options.format, "episodes": written, "of": count,
    }  # fmt: skip
    if not options.json:
        print(f"{written} of {count} episodes are in {options.out}.")
    return answer


def _chosen(datasets: list[Any], options: Options) -> Iterator[tuple[int, Any]]:
    from maniple.cli.progress import bar

    total = sum(len(dataset) for dataset in datasets)
    with bar("export", total, not options.json) as tick:
        places = [(dataset, k) for dataset in datasets for k in range(len(dataset))]
        for number, (dataset, k) in enumerate(places):
            if tick:
                tick(1)
            if options.episodes and number not in options.episodes:
                continue
            episode = dataset[k]
            if episode.success or not options.only_successes:
                yield number, episode


def _write_dataset(datasets: list[Any], options: Options) -> int:
    from maniple.data.lerobot.meta import read_origin
    from maniple.data.lerobot.write import DatasetWriter

    info = datasets[0].info
    origins = [read_origin(dataset.root) for dataset in datasets]
    origin = origins[0] if all(other == origins[0] for other in origins) else {}
    robot = info.get("robot_type") or ""
    with DatasetWriter(options.out, info["fps"], robot, origin) as writer:
        for _, episode in _chosen(datasets, options):
            writer.add(episode)
        return writer.episodes


def _write_npz(datasets: list[Any], options: Options) -> int:
    options.out.mkdir(parents=True, exist_ok=True)
    written = 0
    for number, episode in _chosen(datasets, options):
        arrays = {f"obs.{name}": array for name, array in episode.obs.items()}
        arrays |= {
            name: np.asarray(getattr(episode, name))
            for name in ("action", "reward", "terminated", "truncated", "success", "seed", "task")
        }
        if episode.intervention is not None:
            arrays["intervention"] = episode.intervention
        np.savez_compressed(options.out / f"episode_{number:06d}.npz", **arrays)
        written += 1
    return written
