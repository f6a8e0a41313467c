"""What a person sees of a run while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from maniple.core.rank import Rank
from maniple.learn.config import TrainConfig

ROWS = 12
COLUMNS = ("steps", "success", "train", "return", "steps/s", "updates/s", "replay", "left")


class Screen:
    """A table that grows at the bottom: live on a terminal, plain lines elsewhere."""

    def __init__(self, config: TrainConfig, run_dir: Path, is_quiet: bool) -> None:
        self._config, self._run_dir = config, run_dir
        # Rank 0 speaks for all.
        is_silent = not Rank.here().is_main
        self._console = Console(stderr=is_quiet, highlight=False, quiet=is_silent)
        self._live: Live | None = None
        self._lines: list[tuple[str, ...]] = []
        self._has_begun = False

    def __enter__(self) -> Screen:
        return self

    def _begin(self) -> None:
        """Show the heading; not before the run has started, which may yet be refused."""
        machine, run = self._config.machine, self._config.run
        ranks = Rank.here().world_size
        rows = f"{machine.num_envs} environments"
        if ranks > 1:
            rows = f"{rows} on each of {ranks} ranks ({machine.num_envs * ranks} in all)"
        self._console.print(
            f"[bold]{escape(run.task)}[/], {rows}, seed {run.seed}; everything is kept in "
            f"{escape(str(self._run_dir))}",
            soft_wrap=True,
        )
        if self._console.is_terminal:
            self._live = Live(self._table(), console=self._console, refresh_per_second=4)
            self._live.__enter__()
        else:
            self._console.print(_line(COLUMNS))

    def __exit__(self, *problem: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*problem)
            self._live = None

    def listen(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show one report; the first one, at the start, is the heading."""
        if not self._has_begun:
            self._has_begun = True
            self._begin()
            return
        line = (
            f"{step:,}",
            _percent(metrics.get("success")),
            _percent(metrics.get("train_success")),
            _number(metrics.get("train_return")),
            f"{metrics.get('clock/steps_per_s', 0.0):,.0f}",
            f"{metrics.get('clock/updates_per_s', 0.0):,.0f}",
            f"{metrics.get('replay', 0):,.0f}",
            _duration(self._left_s(step, metrics)),
        )
        if self._lines and self._lines[-1][0] == line[0]:
            return
        self._lines.append(line)
        if self._live is not None:
            self._live.update(self._table())
        else:
            self._console.print(_line(line))

    def _left_s(self, step: int, metrics: Mapping[str, float]) -> float:
        """Seconds to whichever limit comes first; NaN: not known."""
        run = self._config.run
        limits = (
            (run.max_steps, step, metrics.get("clock/steps_per_s", 0.0)),
            (run.max_updates, metrics.get("updates", 0), metrics.get("clock/updates_per_s", 0.0)),
        )
        left = [max(end - now, 0) / rate for end, now, rate in limits if end is not None and rate]
        return min(left, default=float("nan"))

    def sum_up(self, answer: Mapping[str, Any]) -> None:
        """Tell the end."""
        rate, interval = answer["success_rate"], answer["success_ci95"]
        if rate is not None:
            self._console.print(
                f"success [bold]{rate:.0%}[/] (95 %: {interval[0]:.0%} to {interval[1]:.0%}) after "
                f"{answer['steps']:,} steps, {answer['train_s']:.0f} s of training"
            )
        self._console.print(
            f"Watch it: maniple eval {escape(answer['run_dir'])} --episodes 100",
            soft_wrap=True,
        )

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False)
        for name in COLUMNS:
            table.add_column(name, justify="right")
        for line in self._lines[-ROWS:]:
            table.add_row(*line)
        return table


def _line(words: tuple[str, ...]) -> str:
    return " ".join(f"{word:>9}" for word in words)


def _percent(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.0%}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _duration(seconds: float) -> str:
    if seconds != seconds:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
