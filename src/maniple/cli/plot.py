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
    left_out: list[str] = []
    for path in options.runs:
        points = _curve(path, options.metric, options.by)
        if points is None:
            left_out.append(str(path))
            continue
        x, y = points
        axes.plot(x, y, marker="o", markersize=3, label=path.name)
        ends[str(path)] = y[-1]
    if not ends:
        raise BadConfig(_nothing(options))
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
        for path in left_out:
            print(f"left out {path}: it has no {options.metric!r} yet")
        print(f"look at  {options.out}")
    return {
        "out": str(options.out), "metric": options.metric, "last": ends, "left_out": left_out,
    }  # fmt: skip


def _curve(path: Path, metric: str, by: str) -> tuple[list[float], list[float]] | None:
    """Return the points of one run; None: it has none."""
    points = [
        (line[by], line[metric])
        for line in _lines(path)
        if line.get(metric) is not None and by in line
    ]
    if not points:
        return None
    x, y = zip(*points, strict=True)
    return list(x), list(y)


def _lines(path: Path) -> list[dict[str, Any]]:
    from maniple.run.log import read_lines

    file = path / "metrics.jsonl"
    if not file.exists():
        raise BadConfig(f"{path} is no run folder: it has no metrics.jsonl.")
    return read_lines(file)


def _nothing(options: Options) -> str:
    runs = ", ".join(map(str, options.runs))
    known = sorted({name for path in options.runs for line in _lines(path) for name in line})
    if not known:
        return f"{runs} has no metrics yet."
    return f"{runs} has no {options.metric!r} over {options.by!r}. It has: {', '.join(known)}."
