"""maniple plot: the learning curves of runs, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.core.errors import BadConfig
from maniple.core.optional import require


@dataclass(frozen=True)
class Options:
    """Which runs, and what of them."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Run folders."""

    metric: str = "success"
    """What to draw, as it is called in metrics.jsonl."""

    by: str = "step"
    """What to draw it over: step, or a clock such as clock/train_s."""

    out: Path = Path("curves.png")
    """The picture."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Draw one line per run."""
    require("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    ends: dict[str, float] = {}
    for path in options.runs:
        x, y = _curve(path, options.metric, options.by)
        axes.plot(x, y, marker="o", markersize=3, label=path.name)
        ends[str(path)] = y[-1]
    axes.set_xlabel("environment steps" if options.by == "step" else options.by)
    axes.set_ylabel(options.metric)
    if options.metric.endswith("success"):
        axes.set_ylim(-0.02, 1.02)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_png(str(options.out))
    if not options.json:
        print(f"look at  {options.out}")
    return {"out": str(options.out), "metric": options.metric, "last": ends}


def _curve(path: Path, metric: str, by: str) -> tuple[list[float], list[float]]:
    from maniple.run.log import read_lines

    file = path / "metrics.jsonl"
    if not file.exists():
        raise BadConfig(f"{path} is no run folder: it has no metrics.jsonl.")
    lines = read_lines(file)
    points = [
        (line[by], line[metric]) for line in lines if line.get(metric) is not None and by in line
    ]
    if not points:
        known = sorted({name for line in lines for name in line})
        raise BadConfig(f"{path} has no {metric!r} over {by!r}. It has: {', '.join(known)}.")
    x, y = zip(*points, strict=True)
    return list(x), list(y)
