"""maniple report: one page about runs, with a fair comparison of their policies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from maniple.core.optional import require


@dataclass(frozen=True)
class Options:
    """Which runs, and how they are judged."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Run folders; the others are compared with the first."""

    episodes: int = 100
    """Fresh episodes that every policy plays, the same for all; 0: only what the runs wrote."""

    num_envs: int = 16
    """Environments at once; the result does not depend on it."""

    perturb: str = "none"
    """Perturbations to judge them under as well, as in light,camera=0.02; or all, or none."""

    seed: int = 0
    """Episodes of another seed are other episodes."""

    out: Path = Path("report.html")
    """The page."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Judge the policies, write the page, tell the verdicts."""
    from maniple.core.errors import BadConfig
    from maniple.report.runs_page import ReportedRun, write_page

    if not options.runs:
        raise BadConfig("Name run folders, as in: maniple report runs/a runs/b")
    if options.episodes < 0 or options.num_envs < 1:
        raise BadConfig("--episodes must be 0 or more, and --num-envs 1 or more.")
    if len({path.resolve() for path in options.runs}) < len(options.runs):
        raise BadConfig("A run is named twice; name different ones.")
    runs = [ReportedRun.of(path) for path in options.runs]
    if options.episodes:
        require("torch")
        runs = [replace(one, judged=_judge(one, options)) for one in runs]
    compared = write_page(runs, options.out)
    others = [one.name for one in runs if one.config.get("task") != runs[0].config.get("task")]
    if not options.json:
        for row in compared:
            low, high = row["gap_ci95"]
            print(
                f"{row['to']} against {row['from']}, {row['conditions']}: {row['verdict']} "
                f"({100 * row['gap']:+.0f} points, 95 %: {100 * low:+.0f} to {100 * high:+.0f}, "
                f"{row['of']} episodes)"
            )
        for name in others:
            print(f"{name} is of another task than {runs[0].name}: not compared")
        print(f"look at  {options.out}")
    return {"out": str(options.out), "comparisons": compared, "success": _rates(runs)}


def _judge(run: Any, options: Options) -> dict[str, Any]:
    """Play the same fresh episodes with a run's policy, under every condition."""
    from maniple.cli.conditions import conditions
    from maniple.cli.progress import bar, episodes_done
    from maniple.learn.policy import load_policy
    from maniple.run.evaluation import FIRST_SEED, evaluate

    policy = load_policy(run.folder.path)
    found = {}
    for condition, perturb in conditions(options.perturb).items():
        more = {"perturb": perturb} if perturb else {}
        envs = policy.envs(min(options.num_envs, options.episodes), **more)
        first = 2 * FIRST_SEED + options.seed * 1_000_000
        try:
            with bar(f"{run.name}, {condition}", options.episodes, not options.json) as tick:
                found[condition] = evaluate(
                    envs,
                    policy.act,
                    options.episodes,
                    first,
                    policy.stack,
                    watch=episodes_done(tick),
                )
        finally:
            envs.close()
    return found


def _rates(runs: Any) -> dict[str, dict[str, float | None]]:
    return {
        run.name: {
            name: None if result.successes is None else result.success_rate
            for name, result in run.judged.items()
        }
        for run in runs
    }
