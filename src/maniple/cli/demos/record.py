"""maniple demos record: episodes of an expert, or of you, as a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
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
    """Cameras to record, as in: front wrist."""

    image_size: tuple[int, int] | None = None
    """Height and width of the pictures; given alone it means the task's first two cameras."""

    control: str | None = None
    """How actions move the robot, as in delta_position; None: the task's own way."""

    seed: int | None = None
    """Seed of the first episode; None: 0, or the one after the last with --append."""

    engine: str = "auto"
    """auto, native, process or serial."""

    failures: bool = False
    """Keep episodes in which the task was not solved."""

    append: bool = False
    """Add to a dataset that exists already."""

    backend: Literal["mujoco", "rlbench"] = "mujoco"
    """mujoco, or rlbench: RLBench's own planner demonstrates, on CoppeliaSim."""

    stored: Path | None = None
    """Folder of demonstrations that RLBench has stored: read these, instead of playing."""

    keyboard: bool = False
    """Drive the arm yourself, in a window."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Play or read episodes, and write them."""
    from maniple.core.optional import require

    require("pyarrow")  # Before anything is played.
    _check(options)
    if options.stored is not None:
        from maniple.cli.demos.stored import run as run_stored

        return run_stored(options)
    if options.backend == "rlbench":
        from maniple.cli.demos.live import run as run_live

        return run_live(options)
    return _run_mujoco(options)


def _run_mujoco(options: Options) -> dict[str, Any]:
    from maniple.cli.bench.run import pictures
    from maniple.cli.demos.dataset import origin_of, write_dataset
    from maniple.data.demos import Tally, collect
    from maniple.registry import expert, find, make_vec

    rows = 1 if options.keyboard else min(options.num_envs, options.episodes)
    settings = pictures(options.task, options.cameras, options.image_size)
    if options.keyboard:
        from maniple.view.keys import LONG_EPISODE

        settings |= {"control": "ee", "max_episode_steps": LONG_EPISODE, "engine": "native"}
    else:
        settings["engine"] = options.engine
        # An expert may look at more than the task shows by itself.
        settings["observations"] = "all"
        settings |= {"control": options.control} if options.control else {}
        # A task without one is refused before workers start.
        expert(options.task, rows, options.control)
    tallies = [Tally(0, 0)]
    with (
        closing(make_vec(options.task, rows, **settings)) as envs,
        _player(envs, options) as player,
    ):
        episodes = collect(
            envs,
            player,
            options.episodes,
            _first_seed(options),
            only_successes=not options.failures,
            on_end=tallies.append,
        )
        fps, robot = envs.metadata["render_fps"], find(options.task).robot.name
        return write_dataset(
            options, fps, robot, episodes, options.episodes, tally=lambda: tallies[-1],
            origin=origin_of(options.task, envs.metadata),
        )  # fmt: skip


@contextmanager
def _player(envs: Any, options: Options) -> Iterator[Any]:
    """Give what chooses the actions: the task's expert, or a person at the keyboard."""
    if not options.keyboard:
        from maniple.registry import expert

        yield expert(options.task, envs.num_envs, options.control)
        return
    from maniple.cli.demos.keyboard import HELP, Keyboard

    with closing(Keyboard(envs)) as keyboard:
        if not options.json:
            print(HELP)
        yield keyboard


def _check(options: Options) -> None:
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
            f"{options.out} is already a dataset. Add to it with --append, "
            "or choose another folder with --out."
        )


def _first_seed(options: Options) -> int:
    if options.seed is not None:
        return options.seed
    if not options.append:
        return 0
    from maniple.data.lerobot.meta import read_episode_rows

    return max((row.get("seed", -1) for row in read_episode_rows(options.out)), default=-1) + 1
