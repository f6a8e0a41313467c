"""maniple data check: what is wrong with a dataset."""

from __future__ import annotations

from typing import Any

from maniple.cli.data.folder import Options


def run(options: Options) -> dict[str, Any]:
    """Look at every file; the exit code is 1 where something is wrong."""
    from maniple.core.optional import require

    require("pyarrow")
    from maniple.data.lerobot.check import check

    answer = check(options.folder)
    if not options.json:
        for fault in answer["faults"]:
            print(f"{fault['file']}: {fault['what']}")
        print(f"{answer['episodes']} whole episodes, {answer['frames']} rows.")
        if answer["faults"]:
            print(f"Set the torn files aside with: maniple data repair {options.folder}")
    return answer
