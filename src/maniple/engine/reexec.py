"""Turn a forked worker into a new program that goes on with the same job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NoReturn

from maniple.core.child import python_code
from maniple.engine.lifetime import run_and_exit

_BEGIN = "from maniple.engine.reexec import go_on; go_on(sys.argv[1:])"


def reexec(fds: Sequence[int], variables: Mapping[str, str]) -> NoReturn:
    """Exec Python anew, with more variables and the same descriptors.

    The process keeps its number and its tie to its parent: the kernel's parent-death signal
    outlasts an exec.
    """
    for fd in fds:
        os.set_inheritable(fd, True)
    words = python_code(_BEGIN, *map(str, fds))
    os.execve(words[0], words, {**os.environ, **variables})


def go_on(words: Sequence[str]) -> NoReturn:
    """Be the new program, and work."""
    fds = [int(word) for word in words]
    for fd in fds:
        os.set_inheritable(fd, False)

    def live() -> None:
        from maniple.engine.worker import work

        work(fds, is_fork=False)

    run_and_exit(live)
