"""See to it that no process outlives the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def die_with(parent: int, signum: int = signal.SIGKILL) -> None:
    """Ask the kernel to end this process when its parent ends.

    Args:
        parent: The process that must still be the parent now; if it is not, it has died already.
        signum: What to be ended with.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def follow_launcher() -> None:
    """Under torchrun, end when its agent ends: it does not see to that itself.

    A rank whose agent was killed would otherwise run on as an orphan, with all its workers.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        die_with(os.getppid())


def one_thread_each(environment: dict[str, str], threads: int = 1) -> dict[str, str]:
    """Return an environment in which linear-algebra libraries start no more threads than that."""
    return {**environment, **{name: str(threads) for name in THREAD_LIMITS}}
