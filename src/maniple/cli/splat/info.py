"""maniple splat info: what a cloud or a scene file holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

if TYPE_CHECKING:
    from maniple.splat.cloud import Cloud


@dataclass(frozen=True)
class Options:
    """Which file."""

    file: tyro.conf.Positional[Path]
    """A cloud (.ply, .splat, .spz, .sog), a scene file (.yaml), or a task."""

    json: bool = False
    """Print one JSON object instead of a table."""


def run(options: Options) -> dict[str, Any]:
    """Read it and print a summary."""
    from maniple.splat.files import read_cloud
    from maniple.splat.scene import SUFFIXES, read_scene

    file = options.file
    if not file.suffix and not file.exists():
        file = _scene_of(str(file))
    if file.suffix in SUFFIXES:
        parts = read_scene(file).parts
        clouds = [
            {"bodies": sorted({body for body, _ in part.owners}), "lit": part.is_lit}
            | _facts(part.placed())
            for part in parts
        ]
    else:
        clouds = [_facts(read_cloud(file))]
    answer = {"file": str(file), "bytes": file.stat().st_size, "clouds": clouds}
    if not options.json:
        _show(answer)
    return answer


def _scene_of(task: str) -> Path:
    """Return the scene file of a task."""
    from maniple.core.errors import BadConfig
    from maniple.envs.group import TaskGroup
    from maniple.registry import recipe
    from maniple.splat.store import find_scene

    group = recipe(task, {}).group(1, 1)
    found = find_scene(group.model) if isinstance(group, TaskGroup) else None
    group.close()
    if found is None:
        raise BadConfig(
            f"There are no splats of {task} yet: 'maniple splat fit {task}' makes them."
        )
    return found


def _facts(cloud: Cloud) -> dict[str, Any]:
    import numpy as np

    low, high = cloud.means.min(0), cloud.means.max(0)
    return {
        "gaussians": len(cloud),
        "harmonics": round(cloud.sh.shape[1] ** 0.5) - 1,
        "mode": cloud.mode,
        "labels": 0 if cloud.labels is None else len(np.unique(cloud.labels)),
        "low_m": [round(float(v), 4) for v in low],
        "high_m": [round(float(v), 4) for v in high],
        "scale_m": round(float(np.median(cloud.scales.max(1))), 5),
        "opacity": round(float(np.median(cloud.opacities)), 3),
    }


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row("file", f"{answer['file']} ({answer['bytes']} bytes)")
    for facts in answer["clouds"]:
        for name, value in facts.items():
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            table.add_row(name.removesuffix("_m"), text)
    Console(highlight=False).print(table)
