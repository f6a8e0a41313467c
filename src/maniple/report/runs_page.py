"""Tell runs on one page: how they learned, how good they are, and how they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maniple.core.errors import BadConfig
from maniple.report.page import Page
from maniple.report.paired import compare
from maniple.run.evaluation import Evaluation
from maniple.run.folder import RunFolder
from maniple.run.log import read_lines

MOST_FILM_BYTES = 8 * 2**20
CURVES = {"success": "success", "return": "return", "steps per second": "clock/steps_per_s"}
"""Metrics that are drawn, where a run has them."""
APART = ("seed", "wandb", "max_minutes", "device", "torch_threads", "workers", "engine")
"""Settings in which runs of one group may differ: their curves are drawn together."""


@dataclass(frozen=True)
class ReportedRun:
    """A run's settings, metrics, and how its policy did just now."""

    folder: RunFolder
    config: dict[str, Any]
    lines: list[dict[str, Any]]
    judged: Mapping[str, Evaluation] = field(default_factory=dict)
    """Evaluations by name: 'clean', and one for each perturbation."""

    @classmethod
    def of(cls, path: Path) -> ReportedRun:
        """Read a run folder."""
        folder = RunFolder(path)
        config = folder.config()
        if not folder.metrics.exists():
            raise BadConfig(f"{path} has no {folder.metrics.name} yet: nothing to report.")
        return cls(folder, config, read_lines(folder.metrics))

    @property
    def name(self) -> str:
        """What it is called on the page."""
        return self.folder.path.name

    @property
    def group(self) -> str:
        """The same for runs that differ in nothing that matters but their seed."""
        return str(sorted((k, str(v)) for k, v in _flat(self.config).items() if k not in APART))

    @property
    def about(self) -> str:
        """What was learned by what."""
        return f"{self.config.get('algorithm')} on {self.config.get('task')}"


def write_page(runs: Sequence[ReportedRun], out: Path) -> list[dict[str, Any]]:
    """Write the page; return the comparisons that it tells."""
    page = Page("Report: " + ", ".join(run.name for run in runs))
    _tell_success(page, runs)
    compared = _tell_comparisons(page, runs)
    _draw_curves(page, runs)
    _tell_settings(page, runs)
    _show_films(page, runs)
    page.write(out)
    return compared


def _tell_success(page: Page, runs: Sequence[ReportedRun]) -> None:
    rows = [
        (run.name, name, rate(result), result.episodes, result.return_mean)
        for run in runs
        for name, result in run.judged.items()
    ]
    if rows:
        page.heading("How good they are")
        page.text("Fresh episodes, the same for every run. In brackets: the 95 % interval.")
        page.table(("run", "conditions", "success", "episodes", "mean return"), rows)


def rate(result: Evaluation) -> str:
    """Return a success rate with its interval, for people."""
    if result.successes is None:
        return "no success defined"
    low, high = result.success_ci95
    return f"{result.success_rate:.0%} ({low:.0%} to {high:.0%})"


def _tell_comparisons(page: Page, runs: Sequence[ReportedRun]) -> list[dict[str, Any]]:
    """Compare every run with the first one, condition by condition."""
    first, found = runs[0], []
    for other in runs[1:]:
        if other.config.get("task") != first.config.get("task"):
            continue
        for name in (name for name in other.judged if name in first.judged):
            result = compare(outcomes(first.judged[name]), outcomes(other.judged[name]))
            row = {"from": first.name, "to": other.name, "conditions": name, **result._asdict()}
            found.append(row)
    if found:
        page.heading(f"Against {first.name}, episode by episode")
        page.text(
            "Both played the same episodes. Only those that ended differently tell anything; two "
            "equal policies are told apart in at most 5 % of such comparisons."
        )
        page.table(
            ("run", "conditions", "verdict", "gained", "lost", "difference", "95 % interval", "p"),
            [
                (r["to"], r["conditions"], r["verdict"], r["gained"], r["lost"],
                 f"{100 * r['gap']:+.0f} points",
                 f"{100 * r['gap_ci95'][0]:+.0f} to {100 * r['gap_ci95'][1]:+.0f}", r["p"])
                for r in found
            ],
        )  # fmt: skip
    return found


def outcomes(result: Evaluation) -> list[float]:
    """Return what episodes are compared by: success, or the return where there is none."""
    return [float(s) for s in result.solved] if result.solved else result.returns


def _draw_curves(page: Page, runs: Sequence[ReportedRun]) -> None:
    page.heading("How they learned")
    groups: dict[str, list[ReportedRun]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    for title, metric in CURVES.items():
        curves: dict[str, list[tuple[float, float]]] = {}
        for members in groups.values():
            name = members[0].about if len(groups) == 1 else members[0].name
            curves |= _spread(name, [_curve(run, metric) for run in members])
        page.chart(title, curves)


def _curve(run: ReportedRun, metric: str) -> list[tuple[float, float]]:
    return [(line["step"], line[metric]) for line in run.lines if line.get(metric) is not None]


def _spread(
    name: str, curves: Sequence[Sequence[tuple[float, float]]]
) -> dict[str, list[tuple[float, float]]]:
    """One curve as it is; of several seeds the lowest, the middle and the highest."""
    curves = [curve for curve in curves if curve]
    if len(curves) < 2:
        return {name: list(curves[0])} if curves else {}
    steps = sorted(set.intersection(*({x for x, _ in curve} for curve in curves)))
    values = np.array([[dict(curve)[x] for x in steps] for curve in curves])
    if not len(steps):
        return {f"{name}, {k}": list(curve) for k, curve in enumerate(curves)}
    parts = {"lowest": values.min(0), "median": np.median(values, 0), "highest": values.max(0)}
    return {
        f"{name}, {part} of {len(curves)}": list(zip(steps, found.tolist(), strict=True))
        for part, found in parts.items()
    }


def _tell_settings(page: Page, runs: Sequence[ReportedRun]) -> None:
    flat = [_flat(run.config) for run in runs]
    names = sorted(set().union(*flat))
    differing = [n for n in names if len({str(one.get(n)) for one in flat}) > 1]
    if len(runs) > 1:
        page.heading("Settings in which they differ")
        rows = [(n, *(str(one.get(n, "")) for one in flat)) for n in differing]
        page.table(("setting", *(run.name for run in runs)), rows)
    page.heading("Settings of the first")
    page.table(("setting", "value"), [(n, str(flat[0][n])) for n in names if n in flat[0]])


def _flat(config: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in config.items():
        found |= _flat(value, f"{at}{name}.") if isinstance(value, dict) else {at + name: value}
    return found


def _show_films(page: Page, runs: Sequence[ReportedRun]) -> None:
    films = [(run, path) for run in runs for path in sorted(run.folder.videos.glob("*.mp4"))]
    if films:
        page.heading("Films")
    for run, path in films:
        if path.stat().st_size <= MOST_FILM_BYTES:
            page.file(path, f"{run.name}: {path.stem}")
        else:
            page.text(f"{path} is too large for a page.")
