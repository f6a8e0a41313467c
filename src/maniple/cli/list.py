"""maniple list: every task with its robot, sentence and cameras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import tyro


@dataclass(frozen=True)
class Options:
    """What to list."""

    module: Annotated[str | None, tyro.conf.Positional] = None
    """A module of yours: list what it registers, as 'module:id'."""

    robots: bool = False
    """Show robots instead of tasks."""

    json: bool = False
    """Print one JSON object instead of a table."""


def run(options: Options) -> dict[str, Any]:
    """Print the table and return it."""
    answer = {"robots": _robots()} if options.robots else {"tasks": _tasks(options.module)}
    if not options.json:
        _show(answer)
    return answer


def _tasks(module: str | None) -> list[dict[str, Any]]:
    from maniple.registry import EXPERTS, TASKS, find, import_module

    rows = []
    if module is not None:
        import_module(module)
    ids = [
        id if module is None else f"{module}:{id}"
        for id, where in TASKS.items()
        if module is None or where.startswith(f"{module}:")
    ]
    for id in ids:
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
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    if "robots" in answer:
        for name in ("robot", "joints"):
            table.add_column(name)
        for robot in answer["robots"]:
            table.add_row(robot["name"], ", ".join(robot["joints"]))
    else:
        for name in ("task", "robot", "expert", "cameras", "what it is about"):
            # An id is there to be copied: it is never shortened.
            is_whole = name in ("task", "robot", "expert")
            table.add_column(name, no_wrap=is_whole, overflow="ignore" if is_whole else "fold")
        for task in answer["tasks"]:
            table.add_row(
                task["id"],
                task["robot"],
                "yes" if task["expert"] else "",
                ", ".join(task["cameras"]),
                task["sentence"] + (" (experimental)" if task["experimental"] else ""),
            )
    console = Console()
    # In a pipe there is no screen to fit.
    console.print(table, width=None if console.is_terminal else 200)
