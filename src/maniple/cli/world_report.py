"""maniple world report: one page of a world-model run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.core.optional import require


@dataclass(frozen=True)
class Options:
    """Which run."""

    folder: Annotated[Path, tyro.conf.Positional]
    """Run folder of a phase, such as outputs/teacher_rl."""

    out: Path | None = None
    """The page; None: report.html in the run folder."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Write the page."""
    require("torch")
    from maniple.report.world_page import write_page

    out = write_page(options.folder, options.out or options.folder / "report.html")
    if not options.json:
        print(f"look at  {out}")
    return {"report": str(out), "bytes": out.stat().st_size}
