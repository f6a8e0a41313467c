"""Tell a world-model run on one page: what it knows, against what it is measured by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig
from maniple.report.page import Page
from maniple.run.checkpoint import Checkpoints
from maniple.run.folder import RunFolder
from maniple.run.log import read_lines
from maniple.run.tree import unsplit
from maniple.world.coverage import SQUARE_M, VOXEL_M
from maniple.world.phase import NAMES
from maniple.world.quality import HORIZONS, IGNORES_BELOW_DB

SHOWN_FILES = 3
"""Newest samples and videos that a page holds."""
CURVES = {
    "loss": ("loss", "loss/picture", "loss/state", "loss/latent", "loss/ensemble"),
    "gain over copying the last frame, moving pixels (dB)": tuple(
        f"quality/gain_db_h{h}" for h in HORIZONS
    ),
    "what the true actions are worth (dB)": tuple(f"quality/sensitivity_db_h{h}" for h in HORIZONS),
    "rewards": ("reward/disagreement", "reward/uncertainty", "reward/raw_error",
                "reward/memory_approach", "reward/action_cost", "reward/total"),
    "coverage (cells)": ("coverage/gripper", "coverage/object", "coverage/base"),
    "probe set (dB)": ("probe/db", "probe/best_db"),
    "error in new episodes": ("error/explorer",),
}  # fmt: skip


def write_page(folder: Path, out: Path) -> Path:
    """Write the page of a run folder of any phase."""
    run = RunFolder(folder, NAMES)
    config = run.config()
    if "phase" not in config:
        raise BadConfig(f"{folder} is no run of a world-model phase.")
    if not run.metrics.exists():
        raise BadConfig(f"{folder} has no {run.metrics.name} yet: nothing to report.")
    lines = read_lines(run.metrics)
    page = Page(
        f"{config['phase']}: {config['environment']['task']}, seed {config['training']['seed']}"
    )
    _tell_quality(page, _last(lines))
    page.heading("Curves over episodes")
    for title, names in CURVES.items():
        curves = {n.rpartition("/")[2]: [(d["step"], d[n]) for d in lines if d.get(n) is not None]
                  for n in names}  # fmt: skip
        page.chart(title, {name: curve for name, curve in curves.items() if curve})
    _map_coverage(page, folder)
    _show_files(page, folder)
    page.heading("Settings")
    page.table(("setting", "value"), _settings(config))
    page.write(out)
    return out


def _last(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The newest value of every metric."""
    found: dict[str, Any] = {}
    for line in lines:
        found |= {name: value for name, value in line.items() if value is not None}
    return found


def _tell_quality(page: Page, last: dict[str, Any]) -> None:
    page.heading("What the model knows of held-out episodes")
    rows, worth = [], []
    for h in HORIZONS:
        get = lambda name, h=h: last.get(f"quality/{name}_h{h}")  # noqa: E731
        if get("gain_db") is None:
            continue
        rows.append((h, *(float(get(name) or float("nan")) for name in (
            "moving_db", "copy_db", "gain_db", "sensitivity_db", "psnr", "psnr_copy", "ssim",
            "ssim_copy"))))  # fmt: skip
        worth.append(get("sensitivity_db"))
    if not rows:
        page.text("This model does not draw: it was not measured by pictures.")
        return
    if max(worth) < IGNORES_BELOW_DB:
        page.note("The model ignores actions: true ones are worth less than half a decibel.")
    if worse := [row[0] for row in rows if row[3] <= 0]:
        page.note(f"Copying the last frame is better at {worse} steps ahead.")
    page.table(
        ("steps ahead", "moving pixels (dB)", "copying (dB)", "gain", "actions are worth",
         "all pixels (dB)", "copying (dB)", "SSIM", "copying"), rows,
    )  # fmt: skip
    if last.get("quality/spearman") is not None:
        page.text(f"Disagreement of the ensemble against true error: rank correlation "
                  f"{last['quality/spearman']:.2f}.")  # fmt: skip
    if last.get("quality/failed"):
        page.note(f"{last['quality/failed']:.0f} predictions failed; their panels are red.")


def _map_coverage(page: Page, folder: Path) -> None:
    newest = Checkpoints(folder, names=NAMES).latest()
    if newest is None:
        return
    learner = unsplit(newest.about()["state"], newest.arrays())["learner"]
    if "coverage" not in learner:
        return
    for kind, side_m in (("gripper", VOXEL_M), ("base", SQUARE_M)):
        seen = learner["coverage"].get(kind, ())
        if not len(seen):
            continue
        page.heading(f"Where the {kind} was, from above")
        cells = {(int(x), int(y)) for x, y, _ in seen.tolist()}
        page.dots(f"{len(cells)} squares of {100 * side_m:.0f} cm; {len(seen)} cells in all",
                  [(x * side_m, y * side_m) for x, y in sorted(cells)], side_m)  # fmt: skip


def _show_files(page: Page, folder: Path) -> None:
    page.heading("Truth beside prediction")
    for kind in ("samples/*.png", "videos/*.mp4"):
        for path in sorted(folder.glob(kind))[-SHOWN_FILES:]:
            page.file(path, path.stem)


def _settings(config: dict[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for section, values in config.items():
        for name, value in values.items() if isinstance(values, dict) else [("", values)]:
            rows.append((f"{section}.{name}".rstrip("."), str(value)))
    return rows
