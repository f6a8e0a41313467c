"""maniple list: every task with its robot, sentence and cameras."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro


@dataclass(frozen=True)
class Options:
    """What to list."""

    module: Annotated[str | None, tyro.conf.Positional] = None
    """A module of yours: list what it registers, as 'module:id'; or one of these, so named."""

    robots: bool = False
    """Show robots instead of tasks."""

    pictures: Path | None = None
    """Folder for a sheet of all tasks, and for an animation of each by its expert."""

    json: bool = False
    """Print one JSON object instead of a table."""


def run(options: Options) -> dict[str, Any]:
    """Print the table and return it."""
    answer: dict[str, Any] = (
        {"robots": _robots()} if options.robots else {"tasks": _tasks(options.module)}
    )
    if not options.json:
        _show(answer)
    if options.pictures is not None:
        from maniple.cli.list_pictures import draw_tasks
        from maniple.core.errors import BadConfig

        if options.robots:
            raise BadConfig("--pictures are of tasks: leave --robots out.")
        ids = [row["id"] for row in answer["tasks"]]
        files = draw_tasks(ids, options.pictures, not options.json)
        answer["pictures"] = [str(file) for file in files]
        if not options.json:
            print(f"\nlook at  {files[0]}, and the {len(files) - 1} animations beside it")
    return answer


def _tasks(named: str | None) -> list[dict[str, Any]]:
    from maniple.core.errors import unknown
    from maniple.registry import EXPERTS, TASKS, find, import_module

    rows = []
    module, _, chosen = (named or "").partition(":")
    if module:
        import_module(module)
    ids = [
        f"{module}:{id}" if module else id
        for id, where in TASKS.items()
        if not module or where.startswith(f"{module}:")
    ]
    if chosen and f"{module}:{chosen}" not in ids:
        listing = f"maniple list {module}".strip()
        raise unknown("task", f"{module}:{chosen}", ids, f"'{listing}'")
    for id in [f"{module}:{chosen}"] if chosen else ids:
        task: Any = find(id)()
        rows.append(
            {
                "id": id,
                "robot": task.robot.name,
                "sentence": task.sentence,
                "cameras": list(task.cameras),
                "experimental": task.experimental,
                "expert": id in EXPERTS,
                "variations": task.variations,
            }
        )
    return rows


def _robots() -> list[dict[str, Any]]:
    from maniple.registry import ROBOTS, find_robot

    robots = [find_robot(name) for name in ROBOTS]
    return [{"name": r.name, "joints": [*r.plain_joints, *_first_fingers(r)]} for r in robots]


def _first_fingers(robot: Any) -> list[str]:
    """One joint of each gripper: its other joints do the same."""
    return [robot.groups[name][0] for name in robot.grippers]


def _show(answer: dict[str, Any]) -> None:
    from maniple.cli.table import lines

    if "robots" in answer:
        rows = [(robot["name"], ", ".join(robot["joints"])) for robot in answer["robots"]]
        print("\n".join(lines(("robot", "joints"), rows)))
        return
    rows = [
        (
            task["id"],
            task["robot"],
            "yes" if task["expert"] else "",
            task["sentence"] + (" (experimental)" if task["experimental"] else ""),
            ", ".join(task["cameras"]),
        )
        for task in answer["tasks"]
    ]
    print("\n".join(lines(("task", "robot", "expert", "what it is about", "cameras"), rows)))
