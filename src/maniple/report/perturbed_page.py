"""Tell on one page how policies bear perturbations, beside the same episodes without them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.data.video import save_png
from maniple.report.page import Page
from maniple.report.paired import Comparison, compare
from maniple.report.runs_page import outcomes, rate
from maniple.run.evaluation import Evaluation
from maniple.sim.perturbation import AXES

CLEAN = "clean"


@dataclass(frozen=True)
class Judged:
    """One policy in one task, under every condition."""

    task: str
    policy: str
    results: Mapping[str, Evaluation]
    """By condition; the first is 'clean'."""
    sheet: NDArray[np.uint8] | None = field(default=None, repr=False)
    """What the conditions look like."""

    def comparison(self, condition: str) -> Comparison | None:
        """Compare a condition with the clean one, episode by episode."""
        if condition == CLEAN:
            return None
        return compare(outcomes(self.results[CLEAN]), outcomes(self.results[condition]))

    def rows(self) -> list[dict[str, Any]]:
        """Return everything that was measured, one condition each."""
        return [self._row(name, result) for name, result in self.results.items()]

    def _row(self, name: str, result: Evaluation) -> dict[str, Any]:
        found = self.comparison(name)
        has_success = result.successes is not None
        return {
            "conditions": name, "episodes": result.episodes,
            # JSON has no NaN: a task without success has no rate.
            "success_rate": result.success_rate if has_success else None,
            "success_ci95": list(result.success_ci95) if has_success else None,
            "return_mean": result.return_mean,
            **({} if found is None else found._asdict()),
        }  # fmt: skip


def table_row(row: Mapping[str, Any], result: Evaluation) -> tuple[str, ...]:
    """Return a condition's line in a table for people."""
    head = (row["conditions"], rate(result), f"{row['return_mean']:.2f}")
    if "verdict" not in row:
        return (*head, "", "", "")
    low, high = row["gap_ci95"]
    gap = f"{100 * row['gap']:+.0f} ({100 * low:+.0f} to {100 * high:+.0f})"
    return (*head, gap, f"{row['gained']} / {row['lost']}", row["verdict"])


HEAD = ("conditions", "success (95 %)", "mean return", "change, points (95 %)",
        "gained / lost", "verdict")  # fmt: skip


def write_page(judged: Sequence[Judged], out: Path) -> None:
    """Write the page."""
    page = Page("Perturbed evaluation: " + ", ".join(dict.fromkeys(one.task for one in judged)))
    page.text(
        "Every condition plays the same episodes as the clean one, from the same seeds. Only "
        "episodes that ended differently tell anything; where nothing has changed, a verdict "
        "other than CANNOT TELL comes up in at most 5 % of the comparisons."
    )
    with tempfile.TemporaryDirectory() as folder:
        for number, one in enumerate(judged):
            page.heading(f"{one.task}, {one.policy}, {one.results[CLEAN].episodes} episodes")
            rows = zip(one.rows(), one.results.values(), strict=True)
            page.table(HEAD, [table_row(row, result) for row, result in rows], is_words=True)
            if one.sheet is not None:
                path = Path(folder) / f"{number}.png"
                save_png(path, one.sheet)
                page.file(path, f"{one.task}: at the beginning, and a little later")
    page.heading("What the numbers mean")
    page.table(
        ("perturbation", "meaning", "usual"),
        [(name, axis.about, f"{axis.usual:g}") for name, axis in AXES.items()],
        is_words=True,
    )
    page.write(out)
