"""Run processes that do not outlive the one that started them."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

from maniple.core.child import die_with

THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def follow_launcher() -> None:
    """Under torchrun, end when its agent ends: torchrun does not take care of that.

    A rank whose agent was killed would otherwise run on as an orphan, with all its workers.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ:
        die_with(os.getppid())


def run_and_exit(live: Callable[[], None]) -> NoReturn:
    """Run what a process was started for, then end it without its parent's clean-ups."""
    code = 1
    try:
        live()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def one_thread_each(environment: dict[str, str], threads: int = 1) -> dict[str, str]:
    """Return an environment in which linear-algebra libraries start no more threads than that."""
    return {**environment, **{name: str(threads) for name in THREAD_LIMITS}}
