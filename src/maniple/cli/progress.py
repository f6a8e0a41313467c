"""A progress bar that stays out of the way of pipes and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def bar(title: str, total: int, is_shown: bool = True) -> Iterator[Callable[[int], None] | None]:
    """Yield a function that advances the bar, or None where nothing is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (is_shown and console.is_terminal):
        yield None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True, refresh_per_second=5) as progress:
        line = progress.add_task(title, total=total)
        yield lambda count: progress.advance(line, count)


def episodes_done(tick: Callable[[int], object] | None) -> Callable[[int, Any], None]:
    """Return what an evaluation calls after every step, to move a bar on by whole episodes."""
    done = [0]

    def watch(finished: int, _: Any) -> None:
        if tick and finished > done[0]:
            tick(finished - done[0])
        done[0] = finished

    return watch
