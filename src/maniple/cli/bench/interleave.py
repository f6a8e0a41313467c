"""Measure contenders in turns, so that a noisy minute on the machine affects all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

from maniple.cli.bench.contender import RAW, Contender
from maniple.cli.bench.isolated import Isolated, IsolatedFailed, close_all


class Result(NamedTuple):
    """The rates of a contender, one per turn, or why there are none."""

    contender: Contender
    rates: list[float]
    failure: str = ""
    memory_mb: float | None = None
    """Of all its processes, after the last turn."""

    @property
    def env_steps_per_s(self) -> float:
        """The median of the turns."""
        return median(self.rates)

    def row(self) -> dict[str, Any]:
        """Return the line that is written to throughput.jsonl."""
        contender, rate = self.contender, self.env_steps_per_s
        return {
            "engine": contender.engine,
            "setting": contender.setting,
            "num_envs": contender.num_envs,
            "workers": contender.workers,
            "action_chunk": contender.action_chunk,
            "env_steps_per_s": round(rate, 1),
            "us_per_env_step": round(1e6 / rate, 3),
            "turns": [round(one, 1) for one in self.rates],
            "images_per_s": round(rate * _pictures(contender) / contender.action_chunk, 1),
            "memory_mb": None if self.memory_mb is None else round(self.memory_mb, 1),
        }


def _pictures(contender: Contender) -> int:
    """Pictures of one environment in one observation."""
    return 0 if contender.engine == RAW else len(contender.env_options.get("cameras", ()))


def interleave(
    contenders: Iterable[Contender],
    turns: int,
    steps: int,
    seconds: float,
    tick: Callable[[int], None] | None = None,
) -> list[Result]:
    """Start all contenders and measure one after the other, `turns` times.

    Args:
        contenders: What to measure; one that fails is left out from then on.
        turns: Measurements of each.
        steps: Control steps of each environment in a turn, at most.
        seconds: The longest time of a turn.
        tick: Called with the number of turns done, for a progress bar.
    """
    processes: dict[Contender, Isolated] = {}
    rates: dict[Contender, list[float]] = {}
    failures: dict[Contender, str] = {}
    memory: dict[Contender, float | None] = {}

    def drop(contender: Contender, error: Exception) -> None:
        failures[contender] = str(error)
        processes[contender].close(seconds=0)

    try:
        # All start at once; each is stopped as soon as it is ready.
        for contender in contenders:
            processes[contender], rates[contender] = Isolated(contender), []
        for contender, process in processes.items():
            try:
                process.wait_ready()
            except IsolatedFailed as error:
                drop(contender, error)
        for _ in range(turns):
            for contender, process in processes.items():
                if contender not in failures:
                    try:
                        rates[contender].append(process.measure(steps, seconds))
                    except IsolatedFailed as error:
                        drop(contender, error)
                if tick is not None:
                    tick(1)
        memory |= {one: p.memory_mb() for one, p in processes.items() if one not in failures}
    finally:
        close_all(process for one, process in processes.items() if one not in failures)
    return [Result(one, rates[one], failures.get(one, ""), memory.get(one)) for one in processes]
