"""Turn a forked worker into a new program that goes on with the same job."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

from maniple.engine.lifetime import run_and_exit

_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from maniple.engine.reexec import go_on; go_on(sys.argv[2:])"
)


def reexec(
    data: bytes, fds: Sequence[int], path: Sequence[str], variables: Mapping[str, str]
) -> NoReturn:
    """Exec Python anew, with more variables and the same descriptors.

    The process keeps its number and its tie to its parent: the kernel's parent-death signal
    outlasts an exec.
    """
    job = os.memfd_create("maniple-job")
    with os.fdopen(os.dup(job), "wb") as file:
        file.write(data)
    os.lseek(job, 0, os.SEEK_SET)
    kept = [job, *fds]
    for fd in kept:
        os.set_inheritable(fd, True)
    words = [sys.executable, "-c", _BEGIN, json.dumps(list(path)), *map(str, kept)]
    os.execve(sys.executable, words, {**os.environ, **variables})


def go_on(words: Sequence[str]) -> NoReturn:
    """Be the new program: read the job, and work."""
    job, *fds = map(int, words)
    for fd in fds:
        os.set_inheritable(fd, False)
    with os.fdopen(job, "rb") as file:
        data = file.read()

    def live() -> None:
        from maniple.engine.worker import work

        work(data, fds, is_fork=False)

    run_and_exit(live)
