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
    """Which runs to draw, and which metric."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Run folders."""

    metric: str = "success"
    """The metric to draw, by its name in metrics.jsonl."""

    by: str = "step"
    """The horizontal axis: step, or a clock such as clock/train_s."""

    out: Path = Path("curves.png")
    """The PNG to write."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Draw one line per run."""
    require("matplotlib")
    from maniple.cli import chart_style as style

    figure = style.new_figure(10.5, 6.2)
    axes = figure.subplots()
    last: dict[str, float] = {}
    left_out: list[str] = []
    for path in options.runs:
        points = _curve(path, options.metric, options.by)
        if points is None:
            left_out.append(str(path))
            continue
        x, y = points
        colour = style.LINE_COLOURS[len(last) % len(style.LINE_COLOURS)]
        line = {"color": colour, "linewidth": 2.2, "marker": "o", "markersize": 5}
        axes.plot(x, y, label=path.name, clip_on=False, **line)
        last[str(path)] = y[-1]
    if not last:
        raise BadConfig(_nothing(options))
    if options.metric.endswith("success"):
        axes.set_ylim(0, 1)
    style.dress(axes, "environment steps" if options.by == "step" else options.by, options.metric)
    # Above the axes, which make room for it, however many runs there are.
    figure.set_layout_engine("constrained", w_pad=0.15, h_pad=0.12)
    figure.legend(loc="outside upper left", ncols=3, **style.LEGEND)
    style.save(figure, options.out)
    if not options.json:
        for path in left_out:
            print(f"left out {path}: it has no {options.metric!r} yet")
        print(f"look at  {options.out}")
    return {
        "out": str(options.out), "metric": options.metric, "last": last, "left_out": left_out,
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
        raise BadConfig(f"{path} is not a run folder: it has no metrics.jsonl.")
    return read_lines(file)


def _nothing(options: Options) -> str:
    runs = ", ".join(map(str, options.runs))
    known = sorted({name for path in options.runs for line in _lines(path) for name in line})
    if not known:
        return f"{runs} has no metrics yet."
    return f"{runs} has no {options.metric!r} over {options.by!r}. It has: {', '.join(known)}."
