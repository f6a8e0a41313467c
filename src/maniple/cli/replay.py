"""maniple replay: recorded episodes drawn again, with any camera, size, quality or renderer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from maniple.cli.out import check_empty, make_folder, writing

MOST_IN_GRID = 64
DEFAULT_SIZE = (240, 320)


@dataclass(frozen=True)
class Options:
    """What to draw again, and how."""

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that 'maniple record' wrote, with states."""

    out: Path | None = None
    """Folder for the films; None: replay/ in the recording."""

    episodes: tuple[int, ...] = ()
    """Numbers of the episodes; none given means all."""

    cameras: tuple[str, ...] = ()
    """Cameras to look through; none given means those of the recording, else the task's first."""

    image_size: tuple[int, int] | None = None
    """Height and width of the pictures; None: 240 320, and in a dataset as recorded."""

    renderer: str | None = None
    """fast, mujoco, rays, splat, hybrid or auto; None: as recorded."""

    scene: Path | None = None
    """Scene file of the splats to draw, for splat and hybrid."""

    quality: Literal["lean", "fine"] = "fine"
    """lean (no shadows, one ray per pixel) or fine (shadows, smooth edges)."""

    film: bool = True
    """Write a film of every episode and camera."""

    grid: bool = False
    """Write one film per camera in which all episodes run side by side."""

    dataset: Path | None = None
    """Write a new LeRobot dataset of these episodes, with the new pictures."""

    check: bool = True
    """Take the actions again from the first state, and say whether the same states follow."""

    num_envs: int = 8
    """Episodes that are drawn at once."""

    task: str | None = None
    """Draw them in this task; needed for one of your own, as in module:id."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Read, compare, draw, tell."""
    from maniple.sim.mujoco_log import without_log

    with without_log():
        return _replay(options)


def _replay(options: Options) -> dict[str, Any]:
    from maniple.core.errors import BadConfig

    if options.num_envs < 1:
        raise BadConfig(f"--num-envs is {options.num_envs}; give 1 or more.")
    folder = _states(options.folder)
    numbers = _numbers(folder, options)
    departed = _compare(folder, numbers, options) if options.check else None
    if options.film or options.grid:
        make_folder(_out(options), "--out")
    with writing(f"films to {_out(options)}"):
        files = _film(folder, numbers, options) if options.film else []
        files += _film_grid(folder, numbers, options) if options.grid else []
    if options.dataset is not None:
        make_folder(options.dataset, "--dataset")
        files.append(_write_dataset(folder, numbers, options, options.dataset))
    for file in files if not options.json else ():
        print(f"look at  {file}")
    return {
        "folder": str(options.folder), "episodes": numbers, "files": [str(f) for f in files],
        "departures": departed,
        "is_exact": None if departed is None else not departed,
    }  # fmt: skip


def _out(options: Options) -> Path:
    return options.out or options.folder / "replay"


def _states(root: Path) -> Path:
    from maniple.core.errors import BadConfig
    from maniple.data.lerobot.paths import INFO_PATH
    from maniple.data.trajectory import states_in

    if not root.is_dir():
        raise BadConfig(f"{root} is {'no folder' if root.exists() else 'not there'}.")
    found = states_in(root)
    if found is not None:
        return found
    if (root / INFO_PATH).is_file():
        raise BadConfig(
            f"{root} is a dataset without the simulator's states, which replay draws: record with "
            "'maniple record TASK --format both'."
        )
    raise BadConfig(f"{root} holds no states: there is no states/episode_000000.json in it.")


def _numbers(folder: Path, options: Options) -> list[int]:
    from maniple.core.errors import BadConfig
    from maniple.data.trajectory import numbers_in

    there = numbers_in(folder)
    for number in options.episodes:
        if number not in there:
            raise BadConfig(f"There is no episode {number} in {folder}; it has {_spans(there)}.")
    return list(dict.fromkeys(options.episodes)) or there


def _spans(numbers: list[int]) -> str:
    return f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])


def _batches(folder: Path, numbers: list[int], size: int) -> Iterator[tuple[list[int], list[Any]]]:
    """Read episodes some at a time; those of one batch have the same task and settings."""
    from maniple.data.trajectory import read_trajectory

    batch: list[tuple[int, Any]] = []
    for number in numbers:
        read = read_trajectory(folder, number)
        if batch and (len(batch) == size or _kind(batch[0][1]) != _kind(read)):
            yield [n for n, _ in batch], [t for _, t in batch]
            batch = []
        batch.append((number, read))
    yield [n for n, _ in batch], [t for _, t in batch]


def _kind(trajectory: Any) -> tuple[Any, ...]:
    origin = trajectory.origin
    return origin.task, origin.settings, origin.fps


def _task(trajectory: Any, options: Options) -> str:
    """Return the task to draw: a file alone never has a module imported."""
    from maniple.registry import task_in_file

    return options.task or task_in_file(trajectory.origin.task, "The recording")


def _settings(trajectory: Any, task: str, options: Options) -> dict[str, Any]:
    """Return the recorded settings with other pictures."""
    from maniple.cli.replay_group import checked
    from maniple.envs.extended import is_extended
    from maniple.registry import find

    settings = {k: v for k, v in trajectory.origin.settings.items() if k != "render_mode"}
    settings |= {"image_size": options.image_size or DEFAULT_SIZE}
    if options.renderer is not None:
        settings |= {"renderer": options.renderer, "scene": None}
    if options.scene is not None:
        settings["scene"] = str(options.scene)
    if not is_extended(find(task)):
        cameras = options.cameras or settings.get("cameras") or find(task).cameras[:1]
        settings |= {"cameras": cameras, "image_kinds": ("rgb",), "quality": options.quality}
        settings["render_every"] = 1
    return checked(task, settings)


def _compare(folder: Path, numbers: list[int], options: Options) -> list[dict[str, Any]]:
    """Take the actions again, without pictures; say where the states that follow differ."""
    from maniple.cli.replay_group import group_model, make_group
    from maniple.data.resimulate import departures
    from maniple.sim.model_digest import model_digest

    found: list[dict[str, Any]] = []
    notes: dict[str, None] = {}
    for batch, trajectories in _batches(folder, numbers, options.num_envs):
        origin = trajectories[0].origin
        task = _task(trajectories[0], options)
        blind = {**origin.settings, "cameras": (), "render_mode": None, "scene": None}
        with closing(make_group(task, blind, len(batch))) as group:
            if model_digest(group_model(group)) != origin.model:
                notes[f"the model of {task} is not the one that was recorded"] = None
            results = departures(group, trajectories)
        for number, trajectory, result in zip(batch, trajectories, results, strict=True):
            if result is not None:
                found.append({"episode": number, **result._asdict()})
            notes |= dict.fromkeys(_versions(trajectory))
    if not options.json:
        _tell(numbers, found, list(notes))
    return [{k: v if v == v else None for k, v in one.items()} for one in found]


def _versions(trajectory: Any) -> list[str]:
    from maniple.data.trajectory import versions

    now, then = versions(), trajectory.versions
    return [
        f"recorded with {name} {then.get(name, '?')}, this is {now[name]}"
        for name in now
        if then.get(name) != now[name]
    ]


def _tell(numbers: list[int], found: list[dict[str, Any]], notes: list[str]) -> None:
    for note in notes:
        print(f"note     {note}")
    same = len(numbers) - len(found)
    print(f"states   {same} of {len(numbers)} episodes follow bit for bit from their actions")
    for one in found:
        why = f" ({one['why']})" if one["why"] else f", by {one['gap']:.3g} at most"
        print(f"         episode {one['episode']} departs after action {one['step']}{why}")


def _film(folder: Path, numbers: list[int], options: Options) -> list[Path]:
    from maniple.cli.progress import bar
    from maniple.data.video import Film

    out, files = _out(options), []
    with bar("films", len(numbers), not options.json) as tick:
        for batch, trajectories in _batches(folder, numbers, options.num_envs):
            with ExitStack() as stack:
                shots, fps = _open(stack, trajectories, options)
                films = {
                    (row, camera): stack.enter_context(
                        Film(out / f"episode_{number:06d}_{camera}.mp4", fps)
                    )
                    for row, number in enumerate(batch)
                    for camera in shots.cameras
                }
                files += [film.path for film in films.values()]
                for step, pictures in shots:
                    for (row, camera), film in films.items():
                        if step < len(trajectories[row].states):
                            film.add(pictures[camera][row])
            if tick:
                tick(len(batch))
    return files


def _film_grid(folder: Path, numbers: list[int], options: Options) -> list[Path]:
    from maniple.core.errors import BadConfig
    from maniple.data.video import Film, tile

    chosen = numbers[:MOST_IN_GRID]
    batches = list(_batches(folder, chosen, MOST_IN_GRID))
    if len(batches) > 1:
        raise BadConfig("--grid shows episodes of one task and the same settings only.")
    out, trajectories = _out(options), batches[0][1]
    columns = ceil(sqrt(len(chosen)))
    with ExitStack() as stack:
        shots, fps = _open(stack, trajectories, options)
        films = {
            camera: stack.enter_context(Film(out / f"grid_{camera}.mp4", fps))
            for camera in shots.cameras
        }
        for _, pictures in shots:
            for camera, film in films.items():
                film.add(tile(list(pictures[camera]), columns))
        if len(numbers) > len(chosen) and not options.json:
            print(f"note     the grid shows the first {MOST_IN_GRID} of {len(numbers)} episodes")
        return [film.path for film in films.values()]


def _open(stack: ExitStack, trajectories: list[Any], options: Options) -> tuple[Any, int]:
    from maniple.cli.replay_group import FREE, Shots, make_group
    from maniple.data.video import real_time

    task = _task(trajectories[0], options)
    settings = _settings(trajectories[0], task, options)
    group = stack.enter_context(closing(make_group(task, settings, len(trajectories))))
    every, fps = real_time(trajectories[0].origin.fps)
    # A per-environment task has no list of cameras; it is seen from afar unless one is named.
    cameras = settings["cameras"] or options.cameras or (FREE,)
    return Shots(group, trajectories, cameras, settings["image_size"], every), fps


def _write_dataset(folder: Path, numbers: list[int], options: Options, out: Path) -> Path:
    from maniple.cli.demos.dataset import origin_of
    from maniple.cli.progress import bar
    from maniple.cli.replay_group import make_group
    from maniple.data.lerobot.write import DatasetWriter
    from maniple.data.redraw import Redrawing
    from maniple.data.trajectory import read_trajectory

    check_empty(out, "--dataset")
    origin = read_trajectory(folder, numbers[0]).origin
    with ExitStack() as stack:
        writer: Any = None
        tick = stack.enter_context(bar("dataset", len(numbers), not options.json))
        # One at a time: an episode's pictures have to be in memory together.
        for _, trajectories in _batches(folder, numbers, 1):
            task = _task(trajectories[0], options)
            settings = _settings(trajectories[0], task, options)
            if options.image_size is None and "image_size" in origin.settings:
                settings["image_size"] = origin.settings["image_size"]
            with closing(make_group(task, settings, 1)) as group:
                if writer is None:
                    described = origin_of(task, group.contract.metadata)
                    made = DatasetWriter(out, origin.fps, origin.robot, described)
                    writer = stack.enter_context(made)
                writer.add(Redrawing(group, trajectories).episodes()[0])
            if tick:
                tick(1)
    return out
