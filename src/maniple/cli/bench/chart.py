"""Draw throughput over the number of environments, one line per engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.cli import chart_style as style
from maniple.cli.bench.contender import OURS, RAW
from maniple.core.optional import require

COLOURS = {
    "native": style.GREEN,
    "process": style.BLUE,
    "gymnasium": style.RED,
    "pufferlib": style.OCHRE,
    "sb3": style.PURPLE,
    RAW: style.GREY,
}
LABEL_GAP_PT = 26.0


def draw(rows: list[dict[str, Any]], title: str, path: Path) -> None:
    """Write a PNG: each engine at its best setting for every number of environments."""
    figure = style.new_figure(10.5, 6.2)
    axes = figure.subplots()
    counts = sorted({row["num_envs"] for row in rows})
    ends = []
    for (engine, chunk), best in best_lines(rows).items():
        rates = [row["env_steps_per_s"] for row in best]
        axes.plot([row["num_envs"] for row in best], rates, **_line_style(engine, chunk))
        ends.append((rates[-1], _label(engine, best[-1]), COLOURS[engine]))
    _set_scales(axes, counts)
    style.dress(axes, "environments", "env-steps per second")
    note = "each engine at its best setting; median of its turns in one run; higher is better"
    style.add_title(axes, title, note)
    figure.subplots_adjust(left=0.075, right=0.72, top=0.87, bottom=0.1)
    _place_labels(figure, axes, ends)
    style.save(figure, path)


def best_lines(rows: list[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """Return each line's fastest row per number of environments.

    Chunks are a line of their own: a peer steps once per call, and only that compares with it.
    """
    best: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}
    for row in rows:
        line = best.setdefault((row["engine"], row["action_chunk"]), {})
        known = line.get(row["num_envs"])
        if known is None or row["env_steps_per_s"] > known["env_steps_per_s"]:
            line[row["num_envs"]] = row
    return {key: [line[count] for count in sorted(line)] for key, line in best.items()}


def _line_style(engine: str, chunk: int) -> dict[str, Any]:
    is_ours = engine in OURS
    line: dict[str, Any] = {
        "color": COLOURS[engine],
        "linewidth": 2.4 if is_ours else 1.8,
        "marker": "o",
        "markersize": 6 if is_ours else 5,
        "zorder": 3 if is_ours else 2,
        "clip_on": False,
    }
    if engine == RAW:
        line |= {"linestyle": (0, (5, 3)), "marker": "", "linewidth": 1.6}
    elif chunk > 1:
        line |= {"linestyle": (0, (1.2, 1.4)), "markerfacecolor": "white"}
    return line


def _label(engine: str, last: dict[str, Any]) -> tuple[str, str]:
    """Return the name with its rate, and the line below."""
    name, rate = f"maniple {engine}" if engine in OURS else engine, last["env_steps_per_s"]
    short = f"{rate / 1000:.1f}k" if rate >= 1000 else f"{rate:.0f}"
    return f"{name}  {short}", last["setting"] or (
        "the limit, in the same turns" if engine == RAW else ""
    )


def _set_scales(axes: Any, counts: list[int]) -> None:
    ticker = require("matplotlib.ticker")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_xlim(counts[0] / (1.1 if len(counts) > 1 else 2), counts[-1])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(_thousands))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    low, high = axes.get_ylim()
    axes.set_ylim(low * 0.9, high * 1.1)


def _thousands(value: float, _: Any) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def _place_labels(figure: Any, axes: Any, ends: list[tuple[float, tuple[str, str], str]]) -> None:
    """Write each line's name at its end, pushed apart where lines end close together."""
    figure.canvas.draw()
    gap = LABEL_GAP_PT * figure.dpi / 72
    right = axes.get_xlim()[1]
    edge = axes.transData.transform((right, 1.0))[0]
    ends = sorted(ends)
    heights = [axes.transData.transform((right, rate))[1] for rate, _, _ in ends]
    placed = _apart(heights, gap, axes.bbox.y0 + gap / 2, axes.bbox.y1 + gap / 2)
    back = axes.transData.inverted()
    for (rate, (head, below), colour), y in zip(ends, placed, strict=True):
        label_y = back.transform((edge, y))[1]
        axes.annotate(
            "",
            xy=(1.012, rate),
            xytext=(1.036, label_y),
            xycoords=axes.get_yaxis_transform(),
            textcoords=axes.get_yaxis_transform(),
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "alpha": 0.6},
            annotation_clip=False,
        )
        text = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
        at = (1.04, label_y)
        lift = 5 if below else 0
        axes.annotate(head, at, (0, lift), va="center", color=colour, fontsize=10,
                      fontweight="bold", annotation_clip=False, **text)  # fmt: skip
        axes.annotate(below, at, (0, -6), va="center", color=style.GREY, fontsize=8.5,
                      annotation_clip=False, **text)  # fmt: skip


def _apart(heights: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move sorted heights as little as possible, so that neighbours are at least `gap` apart.

    Neighbours that touch are moved as one block, centred at the mean of their first heights.
    """
    blocks: list[list[float]] = []
    for height in heights:
        blocks.append([height])
        while len(blocks) > 1 and _top(blocks[-2], gap) + gap > _bottom(blocks[-1], gap):
            last = blocks.pop()
            blocks[-1] += last
    placed = []
    for block in blocks:
        first = _bottom(block, gap)
        placed += [first + k * gap for k in range(len(block))]
    over = max(0.0, placed[-1] - high) if placed else 0.0
    placed = [y - over for y in placed]
    under = max(0.0, low - placed[0]) if placed else 0.0
    return [y + under for y in placed]


def _bottom(block: list[float], gap: float) -> float:
    return sum(block) / len(block) - gap * (len(block) - 1) / 2


def _top(block: list[float], gap: float) -> float:
    return sum(block) / len(block) + gap * (len(block) - 1) / 2
