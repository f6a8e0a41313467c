"""maniple data repair: a dataset made whole again."""

from __future__ import annotations

from typing import Any

from maniple.cli.data.folder import Options


def run(options: Options) -> dict[str, Any]:
    """Keep what is whole, set the rest aside, write the meta folder."""
    from maniple.core.optional import require

    require("pyarrow")
    from maniple.data.lerobot.repair import repair

    answer = repair(options.folder)
    if not options.json:
        for file in answer["set_aside"]:
            print(f"torn/{file}")
        print(f"{answer['episodes']} whole episodes, {answer['frames']} rows.")
    return answer
