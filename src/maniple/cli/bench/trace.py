"""maniple bench trace: where the time of every step goes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

PARTS = ("exec", "render", "transport", "video")
"""What a step is made of, in the order of the stack."""


@dataclass(frozen=True)
class Options:
    """What to trace."""

    task: str = "LeRobot-v0"
    """A task of 'maniple list'."""

    num_envs: int = 8
    """Environments."""

    engine: str = "auto"
    """auto, native, process or serial."""

    workers: int | None = None
    """Worker processes of the process engine."""

    action_chunk: int = 1
    """Actions per call; above 1 uses step_chunk."""

    steps: int = 500
    """Control steps of each environment."""

    cameras: tuple[str, ...] = ()
    """Cameras to draw in every step."""

    image_size: tuple[int, int] | None = None
    """Height and width of pictures; given alone it means the task's first two cameras."""

    backend: Literal["mujoco", "rlbench"] = "mujoco"
    """mujoco, or rlbench: the real RLBench on CoppeliaSim, one process per environment."""

    arm_mode: str | None = None
    """The kind of action: ik, planning, joint_position, ...; None: the task's default."""

    record: bool = False
    """Film all environments into trace.mp4, and each of them and every camera into films/; time
    that too."""

    seed: int = 0
    """Seed of the first environment."""

    out: Path = Path("trace")
    """Folder for trace.jsonl and trace.png."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Time every call, write the rows and the picture, print percentiles."""
    from maniple.cli.bench.folder import made
    from maniple.core.optional import require

    _check(options)
    require("matplotlib")
    out = made(options.out)
    times, stats = _time_calls(options, out / "trace.mp4")
    files = [out / "trace.jsonl", out / "trace.png"]
    if options.record:
        files += [out / "trace.mp4", out / "films"]
    answer = {
        "task": options.task,
        "engine": stats["engine"],
        "num_envs": options.num_envs,
        "workers": stats["workers"],
        "action_chunk": options.action_chunk,
        "cameras": list(_pictures(options).get("cameras", ())),
        "calls": len(times["exec"]),
        "env_steps_per_s": round(stats["env_steps"] / float(sum(map(np.sum, times.values()))), 1),
        "ms": {part: _percentiles(times[part]) for part in times},
        "per_worker": stats.get("per_worker", []),
        "files": [str(file) for file in files],
    }
    _write(times, files[0])
    from maniple.cli.bench.trace_chart import draw

    draw(times, answer, files[1])
    _show(answer, sys.stderr if options.json else sys.stdout)
    return answer


def _check(options: Options) -> None:
    from maniple.core.errors import BadConfig

    for name in ("steps", "action_chunk"):
        if getattr(options, name) < 1:
            option = "--" + name.replace("_", "-")
            raise BadConfig(f"{option} is {getattr(options, name)}; give 1 or more.")
    if options.record and not _pictures(options):
        raise BadConfig("--record films a camera; add --cameras front --image-size 96 128.")


def _pictures(options: Options) -> dict[str, Any]:
    from maniple.cli.bench.run import pictures

    if options.backend == "rlbench" and options.image_size and not options.cameras:
        return {"cameras": ("front", "wrist"), "image_size": options.image_size}
    return pictures(options.task, options.cameras, options.image_size)


def _time_calls(options: Options, film: Path) -> tuple[dict[str, NDArray], dict[str, Any]]:
    """Return seconds per call of every part, and the engine's own figures."""
    from maniple.cli.bench.rate import BATCHES, action_batches
    from maniple.cli.progress import bar

    shown = _pictures(options)
    calls = max(1, options.steps // options.action_chunk)
    envs = _make(options, options.engine, options.workers, shown)
    # The engine times drawing and physics together. A second env without cameras, with the same
    # seeds and actions, simulates the same bits: the difference of both times is the drawing.
    # CoppeliaSim draws inside its own step: there the two cannot be told apart.
    is_split = shown and options.backend == "mujoco"
    blind = _make(options, envs.engine_name, _workers(envs), {}) if is_split else None
    cameras = tuple(shown["cameras"]) if options.record else ()
    times: dict[str, list[float]] = {part: [] for part in PARTS}
    try:
        actions = action_batches(envs, options.action_chunk, options.seed)
        with _Filming(film, cameras, envs) as shoot, bar("trace", calls, not options.json) as tick:
            for one in filter(None, (envs, blind)):
                one.reset(seed=options.seed)
            for k in range(calls):
                exec_s, rest_s, result = _call(envs, actions[k % BATCHES], options)
                seen_s = exec_s
                if blind is not None:
                    exec_s = min(exec_s, _call(blind, actions[k % BATCHES], options)[0])
                times["exec"].append(exec_s)
                times["render"].append(seen_s - exec_s)
                times["transport"].append(rest_s)
                times["video"].append(shoot(result))
                if tick is not None:
                    tick(1)
        stats = envs.stats()
    finally:
        for one in filter(None, (envs, blind)):
            one.close()
    used = {"exec", "transport"} | ({"render"} if blind is not None else set())
    used |= {"video"} if options.record else set()
    return {part: np.array(times[part]) for part in PARTS if part in used}, stats


def _make(options: Options, engine: str, workers: int | None, shown: dict[str, Any]) -> Any:
    from maniple.registry import make_vec

    own: dict[str, Any] = {"clip_actions": True, **shown}
    if options.backend == "rlbench":
        own["backend"] = "rlbench"
    if options.arm_mode is not None:
        own["arm_mode"] = options.arm_mode
    if engine == "process":
        own["max_chunk"] = max(64, options.action_chunk)
    return make_vec(options.task, options.num_envs, engine=engine, workers=workers, **own)


def _workers(envs: Any) -> int | None:
    return envs.stats()["workers"] if envs.engine_name == "process" else None


def _call(envs: Any, actions: NDArray, options: Options) -> tuple[float, float, Any]:
    """Step once; return the slowest worker's seconds, the rest of the call, and what came out."""
    from time import perf_counter

    act = envs.step if options.action_chunk == 1 else envs.step_chunk
    start = perf_counter()
    result = act(actions)
    whole = perf_counter() - start
    # stats() keeps percentiles only; a trace needs this very call.
    slowest = min(envs.last_exec_s, whole)
    return slowest, whole - slowest, result


class _Filming:
    """Time what each call adds to the films; without cameras there are none."""

    def __init__(self, path: Path, cameras: tuple[str, ...], envs: Any) -> None:
        self._camera = f"{cameras[0]}_rgb" if cameras else ""
        self._film = self._recorder = None
        if cameras:
            from maniple.data.record import Recorder
            from maniple.data.video import Film

            fps = envs.metadata["render_fps"]
            self._film = Film(path, fps=25)
            self._recorder = Recorder(path.with_name("films"), cameras, fps, envs.num_envs)

    def __enter__(self) -> Any:
        return self._shoot

    def __exit__(self, *_: object) -> None:
        for one in (self._film, self._recorder):
            if one is not None:
                one.close()

    def _shoot(self, result: tuple) -> float:
        from time import perf_counter

        if self._film is None or self._recorder is None:
            return 0.0
        from maniple.data.video import tile

        start = perf_counter()
        obs, _, terminated, truncated, _ = result
        frames = list(obs[self._camera])
        self._film.add(tile(frames, max(1, round(len(frames) ** 0.5))))
        self._recorder.add(obs, terminated | truncated)
        return perf_counter() - start


def _percentiles(seconds: NDArray) -> dict[str, float]:
    found = np.percentile(seconds, (50, 90, 99)) * 1e3
    return {
        name: round(float(ms), 4) for name, ms in zip(("p50", "p90", "p99"), found, strict=True)
    }


def _write(times: dict[str, NDArray], path: Path) -> None:
    with path.open("w") as file:
        for k, seconds in enumerate(zip(*times.values(), strict=True)):
            row = {f"{part}_s": round(float(s), 9) for part, s in zip(times, seconds, strict=True)}
            file.write(json.dumps({"call": k, **row}) + "\n")


def _show(answer: dict[str, Any], file: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(file=file, highlight=False, soft_wrap=True)
    console.print(heading(answer))
    table = Table(box=None)
    table.add_column("milliseconds per call")
    for name in ("p50", "p90", "p99"):
        table.add_column(name, justify="right")
    for part, ms in answer["ms"].items():
        table.add_row(part, *(f"{ms[p]:.3f}" for p in ("p50", "p90", "p99")))
    for k, worker in enumerate(answer["per_worker"]):
        ms = worker["exec_ms"]
        label = "exec + render" if "render" in answer["ms"] else "exec"
        table.add_row(f"  worker {k}, {label}", *(f"{ms[p]:.3f}" for p in ("p50", "p90", "p99")))
    console.print(table)
    if answer["per_worker"]:
        console.print("A worker's figures count the first reset as a call too.")
    if "render" in answer["ms"]:
        console.print(
            "render is what the slowest worker takes longer than the same call without cameras, "
            "run beside it."
        )
    for name in answer["files"]:
        console.print(f"look at  {name}")


def heading(answer: dict[str, Any]) -> str:
    """Say in one line what was traced."""
    words = [f"{answer['task']}: {answer['num_envs']} envs, {answer['engine']}"]
    if answer["engine"] == "process":
        words.append(f"{answer['workers']} workers")
    if answer["action_chunk"] > 1:
        words.append(f"chunks of {answer['action_chunk']}")
    if answer["cameras"]:
        words.append("cameras " + " and ".join(answer["cameras"]))
    return ", ".join(words) + f": {answer['env_steps_per_s']:,.0f} env-steps/s"
