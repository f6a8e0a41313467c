"""Start a child process that ends when this process ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Off Linux and macOS there is no SIGKILL."""
_PR_SET_PDEATHSIG = 1
_SAFE = "PYTHONSAFEPATH"

# A program of its own and not preexec_fn, which may deadlock in a process with threads; not
# setpriv, which does not notice that the parent died before the kernel was asked.
# Python ignores SIGPIPE and SIGXFSZ, and an exec would hand that on.
_STUB = f"""
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, int(sys.argv[2]), 0, 0, 0)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[3], sys.argv[3:])
"""


# -P keeps the working folder out of the path: a file there that is named like a module of ours or
# of the standard library must not run.
# What PYTHONPATH says by now comes after what the parent has.
_TAKE_PATH = (
    "import json, sys; path = json.loads(sys.argv.pop(1)); "
    "sys.path[:] = path + [entry for entry in sys.path if entry not in path]; del path\n"
)
_RUN_MODULE = (
    f"{_TAKE_PATH}del sys.argv[0]\n"
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def safe_path() -> list[str]:
    """Return this process's module path with the working folder last, if that is on it at all."""
    try:
        here = os.path.realpath(".")
    except OSError:
        here = ""
    is_here = [entry in ("", ".") or os.path.realpath(entry) == here for entry in sys.path]
    others = [entry for entry, inside in zip(sys.path, is_here, strict=True) if not inside]
    return others + [entry for entry, inside in zip(sys.path, is_here, strict=True) if inside]


def python_module(module: str, *words: str) -> list[str]:
    """Return the command that runs a module in a new Python, which finds what this one finds."""
    return [sys.executable, "-P", "-c", _RUN_MODULE, json.dumps(safe_path()), module, *words]


def python_code(code: str, *words: str) -> list[str]:
    """Return the command that runs a text in a new Python, which finds what this one finds."""
    return [sys.executable, "-P", "-c", _TAKE_PATH + code, json.dumps(safe_path()), *words]


@contextlib.contextmanager
def safe_grandchildren() -> Iterator[None]:
    """Have Python processes that others start meanwhile leave the working folder alone, too."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_SAFE, None)
        else:
            os.environ[_SAFE] = before


def start_child(words: Sequence[str], signum: int = KILL, **options: Any) -> subprocess.Popen:
    """Start a program that gets a signal from the kernel when this process ends.

    The kernel sends it when the *thread* that started the child ends, which need not be the end
    of the process. So unless this is the main thread, another one starts the child and stays
    until the child is gone.

    Args:
        words: The command.
        signum: What the child is ended with.
        options: As subprocess.Popen takes them.

    Raises:
        OSError: There is no such program, or no process or descriptor is left for it.
    """
    if shutil.which(words[0]) is None:
        raise FileNotFoundError(f"There is no program {words[0]!r}.")
    tie = [sys.executable, "-I", "-S", "-c", _STUB, str(os.getpid()), str(int(signum))]
    command = [*tie, *words]
    if threading.current_thread() is threading.main_thread():
        return subprocess.Popen(command, **options)
    made: list[subprocess.Popen | BaseException] = []
    is_started = threading.Event()

    def start_and_last() -> None:
        try:
            made.append(subprocess.Popen(command, **options))
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


def die_with(parent: int, signum: int = KILL) -> None:
    """Ask the kernel to end this process, which was forked, when its parent ends.

    Args:
        parent: The process that must still be the parent now; if it is not, it has died already.
        signum: What to be ended with.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
