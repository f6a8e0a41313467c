"""Say what is wrong with a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig, one_line
from maniple.data.lerobot import meta, paths
from maniple.data.lerobot.features import Features
from maniple.data.lerobot.read import Dataset
from maniple.data.lerobot.survey import FileSet, is_ours, parts, survey
from maniple.data.lerobot.table import UNREADABLE


def check(root: str | Path) -> dict[str, Any]:
    """Look at every file; return the number of whole episodes and a list of faults.

    Returns:
        'ok', 'episodes' and 'frames' that are whole, and 'faults', each with 'file' and 'what'.
    """
    root = Path(root)
    if not any((root / name).is_dir() for name in paths.FOLDERS):
        raise BadConfig(f"{root} is no dataset: it has no folder {' or '.join(paths.FOLDERS)}.")
    if not is_ours(root):
        return _check_another(root)
    sets = survey(root)
    whole = [files for files in sets if files.is_whole]
    faults = [(path, what) for files in sets for path, what in files.faults.items()]
    faults += [(path, "it was being written when its writer ended") for path in parts(root)]
    faults += _check_meta(root, whole)
    return {
        "ok": not faults,
        "episodes": len(whole),
        "frames": sum(files.rows for files in whole),
        "faults": [_fault(root, path, what) for path, what in faults],
    }


def _check_meta(root: Path, whole: list[FileSet]) -> list[tuple[Path, str]]:
    """Compare what the meta folder tells with the files that are whole."""
    path = root / paths.INFO_PATH
    try:
        info = meta.read_info(root)
    except BadConfig as error:
        return [(path, "it is missing" if not path.exists() else str(error))]
    faults = []
    frames = sum(files.rows for files in whole)
    for name, count in (("total_episodes", len(whole)), ("total_frames", frames)):
        if info.get(name) != count:
            faults.append((path, f"it tells {name} {info.get(name)}, and {count} are whole"))
    try:
        rows = meta.read_episode_rows(root)
        tasks = meta.read_tasks(root)
    except UNREADABLE as error:
        return [*faults, (root / "meta", f"it cannot be read: {one_line(error)}")]
    start = 0
    for episode, files in enumerate(whole):
        if files.place[:2] != (episode, start) and files.table:
            faults.append((files.table, f"it is numbered {files.place}, not {(episode, start)}"))
        start += files.rows
        facts = paths.episodes_file(root, files.number)
        row = rows[episode] if episode < len(rows) else None
        if row is None or (row["episode_index"], row["length"]) != (episode, files.rows):
            faults.append((facts, f"it does not tell of episode {episode} as it is"))
        elif tasks[files.place[2] : files.place[2] + 1] != [files.about["task"]]:
            faults.append((root / paths.TASKS_PATH, f"it lacks the task of episode {episode}"))
    if len(rows) > len(whole):
        faults.append((root / "meta/episodes", f"it tells of {len(rows)} episodes"))
    return faults


def _check_another(root: Path) -> dict[str, Any]:
    """Read every episode of a dataset that another program wrote."""
    dataset = Dataset(root)
    faults, frames = [], 0
    for episode in range(len(dataset)):
        try:
            frames += len(dataset[episode])
        except UNREADABLE as error:
            faults.append((root, f"episode {episode}: {error}"))
    Features.from_info(dataset.info["features"])
    return {
        "ok": not faults,
        "episodes": len(dataset) - len(faults),
        "frames": frames,
        "faults": [_fault(root, path, what) for path, what in faults],
    }


def _fault(root: Path, path: Path, what: str) -> dict[str, str]:
    return {"file": path.relative_to(root).as_posix(), "what": what}
