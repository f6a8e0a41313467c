"""One engine or peer at one setting, to be compared with others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

RAW = "raw physics"
OURS = ("native", "process")


@dataclass(frozen=True)
class Contender:
    """A task, the engine that steps it, and the engine's settings."""

    task: str
    """A task of 'maniple list', or 'module:class' of a Gymnasium environment."""

    engine: str
    """native, process, a peer's name, or the raw physics."""

    kind: str
    """Which of the engine's forms, as in async; a key of `_MAKERS`."""

    num_envs: int
    workers: int | None = None
    action_chunk: int = 1

    is_copied: bool = True
    """Whether our engines return copies of the observations."""

    options: str = "{}"
    """Settings of the environments, as JSON: cameras, image_size, renderer."""

    @property
    def setting(self) -> str:
        """The settings in words, without the engine and the number of environments."""
        words = [] if self.kind == self.engine else [self.kind]
        if self.workers is not None:
            words.append(f"{self.workers} worker{'s' if self.workers > 1 else ''}")
        if self.action_chunk > 1:
            words.append(f"chunks of {self.action_chunk}")
        return ", ".join(words)

    @property
    def env_options(self) -> dict[str, Any]:
        """The settings of the environments."""
        return json.loads(self.options)

    def as_options(self) -> dict[str, Any]:
        """Return the arguments that make the same contender in another process."""
        return asdict(self)

    def build(self) -> Any:
        """Return an object with `measure(steps, seconds)` and `close()`."""
        return _Limit(self) if self.engine == RAW else _Stepped(self)


class _Stepped:
    """A vector environment that is stepped while it is measured."""

    def __init__(self, contender: Contender) -> None:
        self._chunk = contender.action_chunk
        self._envs = _MAKERS[contender.kind](contender)
        self._envs.reset(seed=0)

    def measure(self, steps: int, seconds: float) -> float:
        """Return env-steps per second."""
        from maniple.cli.bench.rate import env_steps_per_s

        return env_steps_per_s(self._envs, steps, self._chunk, seconds=seconds)

    def close(self) -> None:
        """End its workers."""
        self._envs.close()


class _Limit:
    """The physics alone."""

    def __init__(self, contender: Contender) -> None:
        from maniple.cli.bench.limit import RawPhysics
        from maniple.core.rank import Rank

        self._physics = RawPhysics(contender.task, 100, Rank.here().num_cpus())

    def measure(self, steps: int, seconds: float) -> float:
        """Return env-steps per second: the median of short runs."""
        from statistics import median
        from time import perf_counter

        rates = []
        end = perf_counter() + seconds
        while not rates or perf_counter() < end:
            rates.append(self._physics.env_steps_per_s())
        return median(rates)

    def close(self) -> None:
        """Nothing to end."""


def _ours(contender: Contender) -> Any:
    from maniple.cli.bench.peers import single
    from maniple.registry import make_vec

    if ":" in contender.task:
        env, options = partial(single, contender.task), {}
    else:
        env, options = contender.task, {"clip_actions": True, **contender.env_options}
    if contender.engine == "process":
        options |= {"workers": contender.workers, "max_chunk": max(64, contender.action_chunk)}
    return make_vec(
        env, contender.num_envs, engine=contender.engine, copy_obs=contender.is_copied, **options
    )


def _peer(name: str, contender: Contender, **options: Any) -> Any:
    from maniple.cli.bench import peers

    if contender.workers is not None:
        options["workers"] = contender.workers
    make = partial(peers.single, contender.task, contender.env_options)
    return getattr(peers, name)(make, contender.num_envs, **options)


_MAKERS: dict[str, Any] = {
    "native": _ours,
    "process": _ours,
    "async, no copy": partial(_peer, "gymnasium_async", copy=False),
    "sync": partial(_peer, "gymnasium_sync", copy=False),
    "serial": partial(_peer, "pufferlib_vector"),
    "multiprocessing": partial(_peer, "pufferlib_vector"),
    "subproc": partial(_peer, "sb3_subproc"),
    "dummy": partial(_peer, "sb3_dummy"),
}


def ours(
    task: str, num_envs: int, workers: list[int], chunks: list[int], options: str = "{}"
) -> Iterator[Contender]:
    """Every setting of our engines that this many environments allow."""
    for chunk in chunks:
        yield Contender(task, "native", "native", num_envs, None, chunk, options=options)
        for count in workers:
            if count <= num_envs:
                yield Contender(task, "process", "process", num_envs, count, chunk, options=options)


def peers_of(
    task: str, num_envs: int, workers: list[int], peer: str, options: str = "{}"
) -> Iterator[Contender]:
    """Every setting of a peer that this many environments allow."""
    kinds = {
        "gymnasium": ("async, no copy", "sync"),
        "pufferlib": ("serial",),
        "sb3": ("subproc", "dummy"),
    }
    for kind in kinds[peer]:
        yield Contender(task, peer, kind, num_envs, options=options)
    if peer == "pufferlib":
        for count in workers:
            # It takes only equal shares.
            if num_envs % count == 0:
                yield Contender(task, peer, "multiprocessing", num_envs, count, options=options)
