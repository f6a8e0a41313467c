"""maniple demos record: episodes of an expert, or of you, as a dataset."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True)
class Options:
    """What to record, and where to."""

    out: Path
    """The dataset's folder."""

    task: str = "so101/LiftCube-v0"
    """A task of 'maniple list' that has an expert."""

    episodes: int = 20
    """Episodes to record."""

    num_envs: int = 8
    """Environments that play at once."""

    cameras: tuple[str, ...] = ()
    """Cameras to film, as in: front wrist."""

    image_size: tuple[int, int] | None = None
    """Height and width of the pictures; given alone it means the task's first two cameras."""

    seed: int | None = None
    """Seed of the first episode; None: 0, or the one after the last with --append."""

    engine: str = "auto"
    """auto, native, process or serial."""

    failures: bool = False
    """Keep episodes in which the task was not solved."""

    append: bool = False
    """Go on with a dataset that is there already."""

    backend: Literal["mujoco", "rlbench"] = "mujoco"
    """mujoco, or rlbench: RLBench's own planner demonstrates, on CoppeliaSim."""

    stored: Path | None = None
    """Folder of demonstrations that RLBench has stored: read these, instead of playing."""

    keyboard: bool = False
    """Drive the arm yourself, in a window."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Play, write, tell."""
    from maniple.core.optional import require

    require("pyarrow")  # Before anything is played.
    from maniple.cli.bench.run import pictures
    from maniple.data.lerobot.write import DatasetWriter
    from maniple.registry import find, make_vec

    if options.stored is not None:
        from maniple.cli.demos.stored import run as run_stored

        return run_stored(options)
    if options.backend == "rlbench":
        from maniple.cli.demos.live import run as run_live

        return run_live(options)
    check(options)
    rows = 1 if options.keyboard else min(options.num_envs, options.episodes)
    settings = pictures(options.task, options.cameras, options.image_size)
    if options.keyboard:
        from maniple.cli.demos.keyboard import LONG_EPISODE

        settings |= {"control": "ee", "max_episode_steps": LONG_EPISODE, "engine": "native"}
    else:
        settings["engine"] = options.engine
        _expert(options.task, rows)  # A task without one is refused before workers start.
    envs = make_vec(options.task, rows, **settings)
    start = time.perf_counter()
    try:
        player = _player(envs, options, rows)
        robot = find(options.task).robot.name
        with DatasetWriter(options.out, envs.metadata["render_fps"], robot) as writer:
            tally = _record(envs, player, writer, options)
            answer = {
                "task": options.task,
                "out": str(options.out),
                "recorded": tally["recorded"],
                "played": tally["played"],
                "solved": tally["solved"],
                "episodes": writer.episodes,
                "frames": writer.frames,
                "seconds": round(time.perf_counter() - start, 2),
            }
    finally:
        envs.close()
    tell(answer, options)
    return answer


def tell(answer: dict[str, Any], options: Options) -> None:
    """Print where the episodes are, unless JSON was asked for."""
    if not options.json:
        print(
            f"{answer['recorded']} episodes of {options.task} are in {options.out} "
            f"({answer['played']} played, {answer['solved']} solved, {answer['seconds']:.1f} s).\n"
            f"Look at them with: maniple demos info {options.out}"
        )


def check(options: Options) -> None:
    from maniple.core.errors import BadConfig
    from maniple.data.lerobot.paths import INFO_PATH
    from maniple.registry import find

    if options.backend == "mujoco" and options.stored is None:
        find(options.task)
    for name in ("episodes", "num_envs"):
        if getattr(options, name) < 1:
            flag = name.replace("_", "-")
            raise BadConfig(f"--{flag} is {getattr(options, name)}; give 1 or more.")
    if (options.out / INFO_PATH).exists() and not options.append:
        raise BadConfig(
            f"{options.out} is a dataset already. Add to it with --append, "
            "or choose another folder with --out."
        )


def _expert(task: str, rows: int) -> Any:
    from maniple.registry import expert

    return expert(task, rows)


def _record(envs: Any, player: Any, writer: Any, options: Options) -> dict[str, int]:
    from maniple.cli.demos.keyboard import WindowClosed
    from maniple.cli.progress import bar
    from maniple.data.demos import Tally, collect

    tally = [Tally(0, 0)]
    recorded = 0
    episodes = collect(
        envs,
        player,
        options.episodes,
        _first_seed(options),
        only_successes=not options.failures,
        on_end=lambda now: tally.__setitem__(0, now),
    )
    with bar(options.task, options.episodes, not options.json) as tick:
        try:
            for episode in episodes:
                writer.add(episode)
                recorded += 1
                if tick:
                    tick(1)
        except WindowClosed:
            pass
        finally:
            if hasattr(player, "close"):
                player.close()
    return {"recorded": recorded, "played": tally[0].played, "solved": tally[0].solved}


def _player(envs: Any, options: Options, rows: int) -> Any:
    if not options.keyboard:
        return _expert(options.task, rows)
    from maniple.cli.demos.keyboard import HELP, Keyboard

    player = Keyboard(envs)
    if not options.json:
        print(HELP)
    return player


def _first_seed(options: Options) -> int:
    if options.seed is not None:
        return options.seed
    if not options.append:
        return 0
    from maniple.data.lerobot.meta import read_episode_rows

    return max((row.get("seed", -1) for row in read_episode_rows(options.out)), default=-1) + 1
