"""Let one process at a time train in a run folder."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TextIO

from maniple.core.errors import BadConfig
from maniple.core.flock import lock_file

NAME = ".lock"


class RunLock:
    """Holds a folder until it is closed or its process ends, however it ends.

    The kernel lets go of a lock with the process that holds it: a kill leaves nothing to clean.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock.

        Raises:
            BadConfig: Another process trains there.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._file: TextIO | None = (folder / NAME).open("a+")
        if not _try_lock(self._file):
            self._file.seek(0)
            holder = _described(self._file.read())
            self._file.close()
            raise BadConfig(
                f"{folder} is in use by {holder}. Wait for it, end it, or name another --run-dir."
            )
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "since": time.time()}))
        self._file.flush()

    def close(self) -> None:
        """Let go; a second call does nothing."""
        if self._file is not None:
            # Not removed: somebody may wait for this very file.
            self._file.truncate(0)
            self._file.close()
            self._file = None


def _try_lock(file: TextIO) -> bool:
    try:
        lock_file(file, wait=False)
    except BlockingIOError:
        return False
    except OSError:
        return True  # Some network file systems have no locks.
    return True


def _described(text: str) -> str:
    try:
        holder = json.loads(text)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
        return f"process {holder['pid']} since {since}"
    except (ValueError, KeyError, TypeError):
        return "another process"
