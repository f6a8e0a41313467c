"""The look that all our charts share: colours, figures without a window, plain axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.optional import require

INK, GREY, FAINT = "#22262b", "#6b7280", "#d9dde2"
GREEN, LIGHT_GREEN = "#0b6e4f", "#6fb98f"
BLUE, RED, OCHRE, PURPLE = "#1f5fbf", "#c8553d", "#b07d12", "#8a4f9e"

LINE_COLOURS = (GREEN, BLUE, RED, OCHRE, PURPLE, GREY)
"""For lines that have no colour of their own, in this order."""

LEGEND = {"frameon": False, "fontsize": 9, "labelcolor": INK}


def new_figure(width_in: float, height_in: float) -> Any:
    """Make a figure that is drawn in memory: it needs no display and nobody has to close it."""
    figure = require("matplotlib.figure").Figure(figsize=(width_in, height_in), dpi=130)
    require("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure as a PNG; make its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png")


def dress(axes: Any, xlabel: str, ylabel: str = "", grid: str = "y") -> None:
    """Label the axes, and leave only a faint grid and the line at the bottom.

    Args:
        axes: Matplotlib's axes, with everything drawn.
        xlabel: What goes to the right.
        ylabel: What goes up.
        grid: The axis whose values get grid lines, "x" or "y".
    """
    axes.set_xlabel(xlabel, color=INK)
    axes.set_ylabel(ylabel, color=INK)
    axes.grid(axis=grid, color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, which="both", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def add_title(axes: Any, title: str, note: str) -> None:
    """Write a bold title over the axes, and a grey line below it."""
    axes.set_title(title, loc="left", fontsize=13, color=INK, pad=26, fontweight="bold")
    axes.text(0, 1.025, note, transform=axes.transAxes, fontsize=9.5, color=GREY)
