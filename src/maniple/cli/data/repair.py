"""maniple data repair: a dataset made whole again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro


@dataclass(frozen=True)
class Options:
    """Which dataset."""

    folder: tyro.conf.Positional[Path]
    """The dataset."""

    json: bool = False
    """Print one JSON object instead of lines."""


def run(options: Options) -> dict[str, Any]:
    """Keep what is whole, set the rest aside, write the meta folder."""
    from maniple.core.need import need

    need("pyarrow")
    from maniple.data.lerobot.repair import repair

    answer = repair(options.folder)
    if not options.json:
        for file in answer["set_aside"]:
            print(f"torn/{file}")
        print(f"{answer['episodes']} whole episodes, {answer['frames']} rows.")
    return answer
