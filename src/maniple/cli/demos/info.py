"""maniple demos info: what a dataset holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro


@dataclass(frozen=True)
class Options:
    """Which dataset."""

    folder: tyro.conf.Positional[Path]
    """A dataset, or a run's folder with datasets in it."""

    json: bool = False
    """Print one JSON object instead of a table."""


def run(options: Options) -> dict[str, Any]:
    """Read the meta folders and print a summary."""
    from maniple.data.demos import datasets_in

    answer = {"datasets": [_facts(root) for root in datasets_in(options.folder)]}
    if not options.json:
        _show(answer["datasets"])
    return answer


def _facts(root: Path) -> dict[str, Any]:
    from maniple.data.lerobot.read import Dataset

    dataset = Dataset(root, with_pictures=False)
    lengths = [row["length"] for row in dataset.rows]
    solved = [bool(row["success"]) for row in dataset.rows if row.get("success") is not None]
    returns = [float(episode.reward.sum()) for episode in dataset]
    return {
        "folder": str(root),
        "robot": dataset.info.get("robot_type"),
        "fps": dataset.info["fps"],
        "episodes": len(dataset),
        "frames": dataset.info["total_frames"],
        "length": _range(lengths),
        "return": _range(returns),
        "solved": sum(solved) if solved else None,
        "tasks": dataset.tasks,
        "features": {
            key: f"{feature['dtype']}{list(feature['shape'])}"
            for key, feature in dataset.info["features"].items()
        },
    }


def _range(values: list[Any]) -> dict[str, float]:
    if not values:
        return {}
    mean = sum(values) / len(values)
    return {"min": min(values), "mean": round(mean, 3), "max": max(values)}


def _show(datasets: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    for facts in datasets:
        table = Table(box=None, pad_edge=False, show_header=False)
        for name in ("folder", "robot", "fps", "episodes", "frames", "solved"):
            if facts[name] is not None:
                table.add_row(name, str(facts[name]))
        for name in ("length", "return"):
            numbers = facts[name]
            table.add_row(
                name, f"{numbers['min']:g} to {numbers['max']:g}, mean {numbers['mean']:g}"
            )
        table.add_row("tasks", "; ".join(facts["tasks"]))
        for key, kind in facts["features"].items():
            table.add_row("", f"{key}  {kind}")
        Console(highlight=False).print(table)
