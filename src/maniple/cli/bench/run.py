"""maniple bench: how fast a task is stepped on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from maniple.cli.bench.invalid_steps import InvalidSteps


@dataclass(frozen=True)
class Options:
    """What to measure."""

    task: str = "LeRobot-v0"
    """A task of 'maniple list'."""

    num_envs: int = 64
    """Environments; under torchrun, per rank."""

    steps: int = 500
    """Control steps of each environment."""

    engine: str = "auto"
    """auto, native, process or serial."""

    workers: int | None = None
    """Worker processes of the process engine."""

    action_chunk: int = 1
    """Actions per call; above 1 uses step_chunk."""

    copy_obs: Literal[0, 1] = 1
    """1 returns copies of the observations, 0 read-only views."""

    cameras: tuple[str, ...] = ()
    """Cameras to draw in every step."""

    image_size: tuple[int, int] | None = None
    """Height and width of pictures; given alone it means the task's first two cameras."""

    renderer: str | None = None
    """What draws them: auto, fast, mujoco, ...; None: the task's choice."""

    backend: Literal["mujoco", "rlbench"] = "mujoco"
    """mujoco, or rlbench: the real RLBench on CoppeliaSim, one process per environment."""

    arm_mode: str | None = None
    """The kind of action: ik, planning, joint_position, ...; None: the task's default."""

    robot_setup: str | None = None
    """The robot in RLBench's scene; on MuJoCo a task has the robot that 'maniple list' shows."""

    record: Path | None = None
    """Folder for a film of every episode, environment and camera (default: the first two)."""

    limit: bool = False
    """Measure the raw physics too, in turns with the environments, and report the fraction."""

    seed: int = 0
    """Seed of the first environment."""

    json: bool = False
    """Print one JSON object instead of a table."""


def prepare(verb: str, words: list[str]) -> list[str]:
    """Allow '--record' without a folder, as in commands that people have already written."""
    for at, word in enumerate(words):
        is_alone = at + 1 == len(words) or words[at + 1].startswith("--")
        if word == "--record" and is_alone:
            return [*words[: at + 1], "films", *words[at + 1 :]]
    return words


def run(options: Options) -> dict[str, Any]:
    """Measure, print, return."""
    from maniple.core.errors import BadConfig

    for name in ("steps", "action_chunk"):
        if getattr(options, name) < 1:
            raise BadConfig(
                f"--{name.replace('_', '-')} is {getattr(options, name)}; give 1 or more."
            )
    from maniple.cli.progress import bar
    from maniple.registry import make_vec

    _check_robot(options)
    envs = make_vec(
        options.task,
        options.num_envs,
        engine=options.engine,
        workers=options.workers,
        copy_obs=bool(options.copy_obs),
        clip_actions=True,
        **_pictures(options),
        **_arm(options),
    )
    invalid = InvalidSteps()
    try:
        envs.reset(seed=options.seed)
        with (
            bar(f"{options.task} x {options.num_envs}", options.steps, not options.json) as tick,
            _recorder(envs, options) as watch,
        ):
            rate, limit, fraction = _measure(envs, options, tick, _both(watch, invalid))
        stats = envs.stats()
    finally:
        envs.close()
    answer = {
        "task": options.task,
        "backend": options.backend,
        "engine": stats["engine"],
        "num_envs": options.num_envs,
        "workers": stats["workers"],
        "action_chunk": options.action_chunk,
        "copy_obs": options.copy_obs,
        "cameras": list(_pictures(options).get("cameras", ())),
        "env_steps_per_s": round(rate, 1),
        "us_per_env_step": round(1e6 / rate, 3),
        "exec_ms": stats["exec_ms"],
        "transport_ms": stats["transport_ms"],
    }
    if invalid.count is not None:
        answer["invalid_steps"] = invalid.count
    if stats.get("restarts"):
        answer["restarts"] = stats["restarts"]
    if limit is not None:
        answer["limit_env_steps_per_s"] = round(limit, 1)
        answer["fraction_of_limit"] = round(fraction, 3)
    if not options.json:
        _show(answer)
    return answer


def _check_robot(options: Options) -> None:
    from maniple.core.errors import BadConfig
    from maniple.registry import find

    if options.robot_setup is None or options.backend == "rlbench":
        return
    has = find(options.task).robot.name
    if options.robot_setup != has:
        raise BadConfig(
            f"--robot-setup is {options.robot_setup!r}, but {options.task} has a {has}. "
            f"Leave it out, or give {has}."
        )


TURNS = 20


@contextmanager
def _recorder(envs: Any, options: Options) -> Iterator[Any]:
    """Film what is measured if --record is given; the films are complete when this ends."""
    if options.record is None:
        yield None
        return
    from maniple.data.record import Recorder

    cameras = _pictures(options)["cameras"]
    recorder = Recorder(options.record, cameras, envs.metadata["render_fps"], envs.num_envs)
    try:
        yield lambda result: recorder.add(result[0], result[2] | result[3])
    finally:
        recorder.close()


def _both(watch: Any, invalid: InvalidSteps) -> Any:
    def see(result: Any) -> None:
        invalid.see(result[4])
        if watch is not None:
            watch(result)

    return see


def _measure(
    envs: Any, options: Options, tick: Any, watch: Any
) -> tuple[float, float | None, float]:
    """Return the rate, and, if asked for, the raw limit and the fraction of it that was reached.

    All are medians of short turns: on a shared machine, only measurements that follow each other
    directly can be compared.
    """
    from maniple.cli.bench.rate import env_steps_per_s

    if not options.limit:
        chunk = options.action_chunk
        return env_steps_per_s(envs, options.steps, chunk, tick=tick, watch=watch), None, 0.0
    from maniple.cli.bench.limit import RawPhysics
    from maniple.core.rank import Rank

    part = max(1, options.steps // TURNS)
    physics = RawPhysics(options.task, 8 * part, Rank.here().num_cpus())
    rates, limits = [], []
    for _ in range(TURNS):
        limits.append(physics.env_steps_per_s())
        rates.append(env_steps_per_s(envs, part, options.action_chunk, tick=tick, watch=watch))
    fractions = np.array(rates) / np.array(limits)
    return float(np.median(rates)), float(np.median(limits)), float(np.median(fractions))


def _pictures(options: Options) -> dict[str, Any]:
    size = options.image_size
    if options.record is not None and size is None:
        size = (128, 128)
    if options.backend == "rlbench" and size is not None and not options.cameras:
        # RLBench's tasks are not in our table: their cameras are always the same.
        return {"cameras": ("front", "wrist"), "image_size": size}
    drawn = pictures(options.task, options.cameras, size)
    return drawn | ({"renderer": options.renderer} if options.renderer else {})


def _arm(options: Options) -> dict[str, Any]:
    """Return the settings of backend and arm; nothing where the task's own are meant."""
    from maniple.core.errors import BadConfig

    if options.backend == "mujoco":
        return {"control": options.arm_mode} if options.arm_mode else {}
    if options.limit:
        raise BadConfig("--limit measures MuJoCo's physics; leave it out with --backend rlbench.")
    chosen = {"backend": "rlbench", "robot_setup": options.robot_setup or "panda"}
    return chosen | ({"arm_mode": options.arm_mode} if options.arm_mode else {})


def pictures(
    task: str, cameras: tuple[str, ...], image_size: tuple[int, int] | None
) -> dict[str, Any]:
    """Return the settings of an environment that draws; nothing where no picture was asked for."""
    if cameras:
        return {"cameras": cameras, "image_size": image_size or (128, 128)}
    if image_size is None:
        return {}
    from maniple.registry import find

    return {"cameras": find(task).cameras[:2], "image_size": image_size}


def _show(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False)
    for name in ("task", "engine", "num_envs", "workers", "action_chunk", "cameras"):
        value = answer[name]
        table.add_row(name, ", ".join(value) if isinstance(value, list) else str(value))
    if "invalid_steps" in answer:
        table.add_row("invalid steps", f"{answer['invalid_steps']:,}")
    table.add_row("env-steps/s", f"[bold]{answer['env_steps_per_s']:,.0f}[/]")
    if "limit_env_steps_per_s" in answer:
        share = f"{answer['limit_env_steps_per_s']:,.0f}: {answer['fraction_of_limit']:.0%} reached"
        table.add_row("raw physics", share)
    for name in ("exec_ms", "transport_ms"):
        times = answer[name]
        table.add_row(name, "  ".join(f"{p} {times[p]:.3f}" for p in ("p50", "p90", "p99")))
    Console(file=sys.stdout).print(table)
