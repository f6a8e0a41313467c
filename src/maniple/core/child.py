"""Start a child process that the kernel ties to this process, not to a thread of it."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from typing import Any


def start_child(words: Sequence[str], **options: Any) -> subprocess.Popen:
    """Start a child from a thread that lasts.

    The kernel's parent-death signal fires when the *thread* that started a child ends, which
    need not be the end of the process. So a thread that may end has another one start the
    child, and that one stays until the child is gone.

    Raises:
        OSError: No process or descriptor is left for it.
    """
    if threading.current_thread() is threading.main_thread():
        return subprocess.Popen(words, **options)
    made: list[subprocess.Popen | BaseException] = []
    is_started = threading.Event()

    def start_and_last() -> None:
        try:
            made.append(subprocess.Popen(words, **options))
        except BaseException as error:
            made.append(error)
        is_started.set()
        if isinstance(made[0], subprocess.Popen):
            made[0].wait()

    threading.Thread(target=start_and_last, name="maniple-child-keeper", daemon=True).start()
    is_started.wait()
    if isinstance(made[0], BaseException):
        raise made[0]
    return made[0]
