"""Make a dataset whole again from the files that are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig
from maniple.data.lerobot import meta, paths
from maniple.data.lerobot.check import check
from maniple.data.lerobot.features import Features
from maniple.data.lerobot.film import read_film
from maniple.data.lerobot.stats import Stats, picture_stats, pooled
from maniple.data.lerobot.survey import FileSet, is_ours, parts, survey
from maniple.data.lerobot.table import numbered, read_table, write_table
from maniple.data.lerobot.write import ending, hold, table_stats


def repair(root: str | Path) -> dict[str, Any]:
    """Set torn files aside, number the whole episodes anew, and write the meta folder.

    Nothing is deleted: what cannot be used goes to the folder 'torn'. It may be killed, too, and
    started again.

    Returns:
        'ok', 'episodes' and 'frames' that are left, and 'set_aside', a list of files.
    """
    root = Path(root)
    found = check(root)
    if found["ok"]:
        return {**found, "set_aside": []}
    if not is_ours(root):
        raise BadConfig(f"{root} was not written by maniple, which repairs only its own datasets.")
    with hold(root):
        sets = survey(root)
        whole = _alike([files for files in sets if files.is_whole])
        lost = [files for files in sets if files not in whole]
        aside = [path for files in lost for path in files.files] + parts(root)
        numbers = {files.number for files in whole}
        facts = paths.numbered(root / "meta/episodes", "parquet")
        aside += [path for number, path in facts.items() if number not in numbers]
        moved = [_set_aside(root, path) for path in aside]
        if not whole:
            if (root / paths.INFO_PATH).exists():
                moved.append(_set_aside(root, root / paths.INFO_PATH))
            return {"ok": True, "episodes": 0, "frames": 0, "faults": [], "set_aside": moved}
        _tell(root, whole)
    return {**check(root), "set_aside": moved}


def _alike(whole: list[FileSet]) -> list[FileSet]:
    """Keep the episodes that have the features of the first."""
    return [files for files in whole if files.about["features"] == whole[0].about["features"]]


def _tell(root: Path, whole: list[FileSet]) -> None:
    """Write the meta folder again, and the numbers in tables that moved up."""
    about = whole[0].about
    tasks = list(dict.fromkeys(files.about["task"] for files in whole))
    meta.write_tasks(root, tasks)
    features = Features.from_info(about["features"])
    films = [film.key for film in features.films.values()]
    start, every = 0, []
    for episode, files in enumerate(whole):
        assert files.table is not None
        task = files.about["task"]
        place = episode, start, tasks.index(task)
        table = read_table(files.table)
        if files.place != place:
            table = numbered(table, *place)
            write_table(files.table, table)
        stats: Stats = {}
        for key in films:
            path = paths.video_file(root, key, files.number)
            stats[key] = picture_stats(read_film(path, 0, files.rows, about["fps"]))
        stats |= table_stats(table, features)
        every.append(stats)
        row = meta.episode_row(
            episode, files.number, start, files.rows, task, films, about["fps"], stats,
            ending(table),
        )  # fmt: skip
        meta.write_episode_row(root, files.number, row)
        start += files.rows
    meta.write_stats(root, pooled(every))
    info = meta.make_info(
        about["fps"], about["robot_type"], about["features"], len(whole), start, len(tasks)
    )
    meta.write_info(root, info)


def _set_aside(root: Path, path: Path) -> str:
    """Move a file to 'torn', beside what was put there before."""
    name = path.relative_to(root)
    target = root / paths.TORN_FOLDER / name
    target.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    while target.exists():
        count += 1
        target = target.with_name(f"{name.name}.{count}")
    path.rename(target)
    return name.as_posix()
