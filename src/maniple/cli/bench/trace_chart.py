"""Draw where the time of every call went, and how evenly the workers share it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.cli import chart_style as style

COLOURS = {
    "exec": style.GREEN,
    "render": style.LIGHT_GREEN,
    "transport": style.RED,
    "video": style.PURPLE,
}
MEANING = {
    "exec": "exec: physics and task, slowest worker",
    "render": "render: drawing, slowest worker",
    "transport": "transport: rest of the call",
    "video": "video: encoding a frame",
}
MOST_COLUMNS = 200


def draw(times: dict[str, NDArray], answer: dict[str, Any], path: Path) -> None:
    """Write a PNG: the parts stacked over the calls, and a bar per worker beside them."""
    from maniple.cli.bench.trace import heading

    workers = answer["per_worker"]
    figure = style.new_figure(11, 5.4)
    widths = (3, 1) if workers else (1,)
    panels = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)
    _stack(panels[0][0], times)
    if workers:
        _bars(panels[0][1], workers, "render" in times)
    title = {"ha": "left", "fontsize": 12, "color": style.INK, "fontweight": "bold"}
    figure.suptitle(heading(answer), x=0.065, **title)
    figure.subplots_adjust(left=0.065, right=0.975, top=0.8, bottom=0.11, wspace=0.22)
    style.save(figure, path)


def _stack(axes: Any, times: dict[str, NDArray]) -> None:
    """Columns of the parts; many calls share a column, which shows their median."""
    calls = len(next(iter(times.values())))
    edges = np.unique(np.linspace(0, calls, min(calls, MOST_COLUMNS) + 1).astype(int))
    below = np.zeros(len(edges) - 1)
    for part, seconds in times.items():
        ms = np.array([np.median(seconds[a:b]) * 1e3 for a, b in pairwise(edges)])
        axes.bar(edges[:-1], ms, np.diff(edges), bottom=below, align="edge",
                 color=COLOURS[part], label=MEANING[part], linewidth=0)  # fmt: skip
        below += ms
    # One slow call must not flatten all others: it is cut off, and the label says so.
    top = float(np.percentile(below, 98)) * 1.25
    axes.set_ylim(0, top)
    cut = int((below > top).sum())
    axes.set_xlim(0, calls)
    per = f", median of each {calls / (len(edges) - 1):.0f}" if calls > MOST_COLUMNS else ""
    note = f" ({cut} higher than shown)" if cut else ""
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, **style.LEGEND)
    style.dress(axes, f"call{per}{note}", "milliseconds per call")


def _bars(axes: Any, workers: list[dict[str, Any]], is_drawn: bool) -> None:
    """Median and tail of every worker."""
    at = np.arange(len(workers))
    p50, p90, p99 = (np.array([w["exec_ms"][p] for w in workers]) for p in ("p50", "p90", "p99"))
    axes.barh(at, p50, 0.5, color=COLOURS["exec"], label="p50")
    axes.hlines(at, p50, p90, color=style.GREY, linewidth=2, label="to p90")
    # The first reset counts as a call here: its p99 would squeeze everything else.
    top = float(p90.max()) * 1.6 or 1.0
    axes.plot(np.minimum(p99, top), at, "|", color=style.INK, markersize=9, markeredgewidth=1.6,
              label="p99", clip_on=False)  # fmt: skip
    for k in np.flatnonzero(p99 > top):
        axes.annotate(f"{p99[k]:.0f} ms", (top, k), (-4, 9), textcoords="offset points",
                      ha="right", fontsize=8.5, color=style.GREY)  # fmt: skip
    axes.set_yticks(at, [f"worker {k}" for k in at])
    axes.set_ylim(len(workers) - 0.3, -0.7)
    axes.set_xlim(0, top)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.1, 1.0), ncols=3, columnspacing=1.0,
                handletextpad=0.4, **style.LEGEND)  # fmt: skip
    style.dress(axes, "ms per call, exec" + (" + render" if is_drawn else ""), grid="x")
