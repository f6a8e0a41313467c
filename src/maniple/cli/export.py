"""maniple export: a trained policy as a folder that LeRobot loads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from maniple.core.optional import require


@dataclass(frozen=True)
class Options:
    """What to write, and where to."""

    checkpoint: tyro.conf.Positional[Path]
    """A run folder, or one of its checkpoints."""

    out: Path
    """The new folder."""

    latest: bool = False
    """Take the newest checkpoint of a run instead of the best."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Load, write, say how to use it."""
    require("torch")
    from maniple.cli.out import check_empty, writing
    from maniple.learn.export import export
    from maniple.learn.policy import load_policy

    check_empty(options.out, "--out")
    policy = load_policy(options.checkpoint, best=not options.latest)
    with writing(str(options.out)):
        files = export(policy, options.out)
    answer = {
        "out": str(options.out),
        "task": policy.config.run.task,
        "checkpoint": str(policy.checkpoint.path),
        "sees": list(policy.needs),
        "files": [path.name for path in files],
    }
    if not options.json:
        print(f"policy   {policy.checkpoint.path}")
        print(f"sees     {', '.join(policy.needs)}")
        print(f"written  {options.out}: {', '.join(answer['files'])}")
        print(f"LeRobot  --policy.path={options.out}, after 'import maniple.lerobot_policy'")
    return answer
