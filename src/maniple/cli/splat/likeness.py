"""Show how much splats look like a scene that they have not seen in these states."""

from __future__ import annotations

from collections.abc import Mapping

from maniple.cli.splat.subject import load_subject
from maniple.splat.making import TRAINING_SIZE
from maniple.splat.poses import PoseSource
from maniple.splat.quality import Likeness
from maniple.splat.views import Views, draw_views

HELD_OUT, OTHER_SEED = 24, 7


def held_out(subject: str) -> tuple[PoseSource, Views]:
    """Return views of states that no splats were fitted to."""
    model, seen = load_subject(subject, OTHER_SEED)
    every = max(1, len(seen) // HELD_OUT)
    source = PoseSource(model, seen[::every][:HELD_OUT])
    return source, draw_views(source, len(source), TRAINING_SIZE)


def show(columns: Mapping[str, Mapping[str, Likeness]]) -> None:
    """Print a table: a row for each camera, PSNR and depth error for each column."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("camera")
    for name in columns:
        table.add_column(f"{name}, dB", justify="right")
        table.add_column("depth, mm", justify="right")
    for camera in next(iter(columns.values())):
        cells = [columns[name][camera] for name in columns]
        table.add_row(camera, *(f"{v:.1f}" for cell in cells for v in cell))
    Console(highlight=False).print(table)
