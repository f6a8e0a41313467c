"""Draw where the time of every call went, and how evenly the workers share it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.optional import require

INK, FAINT, GREY = "#22262b", "#d9dde2", "#6b7280"
COLOURS = {
    "exec": "#0b6e4f",
    "render": "#6fb98f",
    "transport": "#c8553d",
    "video": "#8a4f9e",
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

    require("matplotlib").use("Agg")
    pyplot = require("matplotlib.pyplot")
    workers = answer["per_worker"]
    figure, panels = pyplot.subplots(
        1,
        2 if workers else 1,
        figsize=(11, 5.4),
        dpi=130,
        width_ratios=(3, 1) if workers else (1,),
        squeeze=False,
    )
    _stack(panels[0][0], times)
    if workers:
        _bars(panels[0][1], workers, "render" in times)
    figure.suptitle(heading(answer), x=0.065, ha="left", fontsize=12, color=INK, fontweight="bold")
    figure.subplots_adjust(left=0.065, right=0.975, top=0.8, bottom=0.11, wspace=0.22)
    figure.savefig(path)
    pyplot.close(figure)


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
    # One slow call must not flatten all others: it is cut, with a remark.
    top = float(np.percentile(below, 98)) * 1.25
    axes.set_ylim(0, top)
    cut = int((below > top).sum())
    axes.set_xlim(0, calls)
    per = f", median of each {calls / (len(edges) - 1):.0f}" if calls > MOST_COLUMNS else ""
    note = f" ({cut} higher than shown)" if cut else ""
    axes.set_xlabel(f"call{per}{note}", color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("milliseconds per call", color=INK)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, frameon=False, fontsize=9)
    _dress(axes)


def _bars(axes: Any, workers: list[dict[str, Any]], is_drawn: bool) -> None:
    """Median and tail of every worker."""
    at = np.arange(len(workers))
    p50, p90, p99 = (np.array([w["exec_ms"][p] for w in workers]) for p in ("p50", "p90", "p99"))
    axes.barh(at, p50, 0.5, color=COLOURS["exec"], label="p50")
    axes.hlines(at, p50, p90, color=GREY, linewidth=2, label="to p90")
    # The first reset counts as a call here: its p99 would squeeze everything else.
    top = float(p90.max()) * 1.6 or 1.0
    axes.plot(np.minimum(p99, top), at, "|", color=INK, markersize=9, markeredgewidth=1.6,
              label="p99", clip_on=False)  # fmt: skip
    for k in np.flatnonzero(p99 > top):
        axes.annotate(f"{p99[k]:.0f} ms", (top, k), (-4, 9), textcoords="offset points",
                      ha="right", fontsize=8.5, color=GREY)  # fmt: skip
    axes.set_yticks(at, [f"worker {k}" for k in at])
    axes.set_ylim(len(workers) - 0.3, -0.7)
    axes.set_xlim(0, top)
    axes.set_xlabel("ms per call, exec" + (" + render" if is_drawn else ""), color=INK)
    axes.legend(loc="lower left", bbox_to_anchor=(-0.1, 1.0), ncols=3, frameon=False, fontsize=9,
                columnspacing=1.0, handletextpad=0.4)  # fmt: skip
    _dress(axes, "x")


def _dress(axes: Any, grid: str = "y") -> None:
    axes.grid(axis=grid, color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
