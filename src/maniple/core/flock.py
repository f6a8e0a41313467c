"""Lock an open file against other processes, where the system can."""

from __future__ import annotations

from typing import Any

try:
    import fcntl
except ModuleNotFoundError:  # Windows: two writers at once are then the user's business.
    fcntl = None  # type: ignore[assignment]


def lock_file(file: Any, wait: bool = True) -> None:
    """Lock a file until it is closed; the kernel opens it where its holder dies.

    Raises:
        OSError: Another process holds it, and we do not wait.
    """
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
