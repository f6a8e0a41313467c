"""Let contenders take turns on one machine, so that a noisy minute hits all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

from maniple.cli.bench.contender import Contender
from maniple.cli.bench.isolated import Isolated, IsolatedFailed, close_all


class Standing(NamedTuple):
    """What came of a contender: its rates, one per turn, or why there are none."""

    who: Contender
    rates: list[float]
    failure: str = ""

    @property
    def env_steps_per_s(self) -> float:
        """The median of the turns."""
        return median(self.rates)

    def row(self) -> dict[str, Any]:
        """Return the line that is written to throughput.jsonl."""
        who, rate = self.who, self.env_steps_per_s
        return {
            "engine": who.engine,
            "setting": who.setting,
            "num_envs": who.num_envs,
            "workers": who.workers,
            "action_chunk": who.action_chunk,
            "env_steps_per_s": round(rate, 1),
            "us_per_env_step": round(1e6 / rate, 3),
            "turns": [round(one, 1) for one in self.rates],
        }


def interleave(
    contenders: Iterable[Contender],
    turns: int,
    steps: int,
    seconds: float,
    tick: Callable[[int], None] | None = None,
) -> list[Standing]:
    """Start all contenders, measure them one after the other, `turns` times over.

    Args:
        contenders: Who takes part; one that fails drops out, and the others go on.
        turns: Measurements of each.
        steps: Control steps of each environment in a turn, at most.
        seconds: The longest time of a turn.
        tick: Called with the number of turns done, for a progress bar.
    """
    stands: dict[Contender, Isolated] = {}
    rates: dict[Contender, list[float]] = {}
    failures: dict[Contender, str] = {}

    def drop(who: Contender, error: Exception) -> None:
        failures[who] = str(error)
        stands[who].close(seconds=0)

    try:
        # All start at once; each is stopped as soon as it is ready.
        for who in contenders:
            stands[who], rates[who] = Isolated(who), []
        for who, stand in stands.items():
            try:
                stand.wait_ready()
            except IsolatedFailed as error:
                drop(who, error)
        for _ in range(turns):
            for who, stand in stands.items():
                if who not in failures:
                    try:
                        rates[who].append(stand.turn(steps, seconds))
                    except IsolatedFailed as error:
                        drop(who, error)
                if tick is not None:
                    tick(1)
    finally:
        close_all(stand for who, stand in stands.items() if who not in failures)
    return [Standing(who, rates[who], failures.get(who, "")) for who in stands]
