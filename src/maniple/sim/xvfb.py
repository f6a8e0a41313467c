"""Own a virtual display that dies with its owner."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import time
import weakref
from pathlib import Path

from maniple.core.child import start_child
from maniple.core.errors import BadConfig, ManipleError, NoDisplay

INSTALL = "apt-get install xvfb xauth"
SWITCHES = ("MANIPLE_PER_PROCESS_XVFB", "RLBENCH_PER_PROCESS_XVFB")
"""Variables that forbid (0) or demand (1) a display of its own for every process."""

START_SECONDS = 30.0
GRACE_SECONDS = 2.0
SOCKETS = Path("/tmp/.X11-unix")

# Between bind() and listen() a server that is just starting looks like a dead one.
_YOUNG_SECONDS = 2.0


class Xvfb:
    """One X server without a screen, started here and ended by close().

    If its owner is killed first, the kernel sends it SIGTERM, upon which it removes its socket.

    Args:
        screen: Width, height and depth, as Xvfb takes them.
        start_timeout_s: It must be ready by then.
    """

    def __init__(
        self, screen: str = "1280x1024x24", start_timeout_s: float = START_SECONDS
    ) -> None:
        path = shutil.which("Xvfb")
        if path is None:
            raise NoDisplay(f"Xvfb is not installed. Type: {INSTALL}")
        ours, theirs = os.pipe()
        errors = os.memfd_create("maniple-xvfb-errors", os.MFD_CLOEXEC)
        try:
            # The server picks a free number itself: many may start at the same moment.
            words = [path, "-displayfd", str(theirs), "-screen", "0", screen]
            process = _start([*words, "-nolisten", "tcp", "-noreset"], theirs, errors)
            os.close(theirs)
            theirs = -1
            try:
                number = _read_line(ours, time.monotonic() + start_timeout_s)
                self.socket = SOCKETS / f"X{number}"
                identity = _identity(self.socket)
            except BaseException as error:
                _stop(process)
                if not isinstance(error, (EOFError, TimeoutError)):
                    raise
                raise _failure(error, path, errors, start_timeout_s) from None
        finally:
            for fd in (ours, theirs, errors):
                if fd >= 0:
                    os.close(fd)
        self.display = f":{number}"
        """What the variable DISPLAY must hold for a program to draw there."""
        self.pid = process.pid
        self._process = process
        self._end = weakref.finalize(self, _end, process, os.getpid(), self.socket, identity)
        # Not by itself at exit: GL may still be connected, and a lost display ends the process.
        self._end.atexit = False

    @property
    def is_alive(self) -> bool:
        """Whether programs can still draw there."""
        return self._end.alive and self._process.poll() is None

    def close(self) -> None:
        """End the server and remove its socket; a second call does nothing."""
        self._end()

    def __enter__(self) -> Xvfb:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wants_own_display() -> bool:
    """Tell whether a process that needs X should start an Xvfb: where there is no DISPLAY.

    Either of SWITCHES decides otherwise: 0 never, 1 always.
    """
    settings = {name: os.environ.get(name, "") for name in SWITCHES}
    for name, setting in settings.items():
        if setting not in ("", "0", "1"):
            raise BadConfig(f"{name} is {setting!r}; it may be 0, 1 or unset.")
    if "0" in settings.values():
        return False
    return "1" in settings.values() or not os.environ.get("DISPLAY")


def check_display(display: str) -> None:
    """Refuse a local display that nobody serves: X's own answer ends the process.

    Raises:
        NoDisplay: There is no server; what to type instead.
    """
    found = re.fullmatch(r"(?:unix)?:(\d+)(?:\.\d+)?", display)
    if found is None:
        return  # Another machine's, or something that only X understands.
    path = str(SOCKETS / f"X{found[1]}")
    # Servers listen in a file, and some in a name without one, too.
    if not any(_listens(name) for name in (path, f"\0{path}")):
        raise NoDisplay(
            f"DISPLAY is {display}, where no X server listens. Type 'unset DISPLAY' (every worker "
            "then starts an Xvfb of its own), or start that server."
        )


def _listens(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(address)
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def stale_sockets(folder: Path = SOCKETS) -> list[Path]:
    """List the X sockets that no server listens at, left by servers that were killed."""
    paths = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in paths if _is_stale(path))


def sweep_stale_sockets(folder: Path = SOCKETS) -> list[Path]:
    """Remove the X sockets that no server listens at; return those that were removed."""
    removed = []
    for path in stale_sockets(folder):
        with contextlib.suppress(OSError):  # Somebody else's, or gone already.
            seen = _identity(path)
            if _is_stale(path) and _remove_exactly(path, seen):
                removed.append(path)
    return removed


def _start(words: list[str], fd: int, errors: int) -> subprocess.Popen:
    try:
        return start_child(
            words,
            signal.SIGTERM,
            pass_fds=(fd,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            # A Ctrl-C or a killed group must not take the display before its owner.
            start_new_session=True,
        )
    except OSError as error:
        raise ManipleError(
            f"Cannot start Xvfb: {error.strerror}. Raise the limits of processes and open files "
            "('ulimit -u', 'ulimit -n'), or use fewer workers."
        ) from None


def _read_line(fd: int, deadline: float) -> int:
    """Read the display's number: digits and newline come in two writes, and both must be read."""
    text = b""
    while not text.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([fd], [], [], left)[0]:
            raise TimeoutError
        more = os.read(fd, 64)
        if not more:
            raise EOFError
        text += more
    return int(text)


def _failure(error: BaseException, path: str, errors: int, timeout_s: float) -> NoDisplay:
    # After a wrong option it goes on to list them all.
    text = os.pread(errors, 4000, 0).decode(errors="replace").partition("\nuse: ")[0]
    said = [line.strip() for line in text.splitlines() if line.strip()]
    what = f"was not ready in {timeout_s:g} s" if isinstance(error, TimeoutError) else "ended"
    return NoDisplay(
        f"Xvfb {what}{': ' + ' / '.join(said[-3:]) if said else ''}. "
        f"Try by hand: {path} -displayfd 1 -nolisten tcp"
    )


def _end(
    process: subprocess.Popen, owner: int, path: Path, identity: tuple[int, int] | None
) -> None:
    if os.getpid() != owner:
        return  # A forked child holds a copy of this object, not the display.
    _stop(process)
    with contextlib.suppress(OSError):
        _remove_exactly(path, identity)


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells one socket from another of the same name."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def _is_stale(path: Path) -> bool:
    try:
        found = path.lstat()
        if not re.fullmatch(r"X\d+", path.name) or not stat.S_ISSOCK(found.st_mode):
            return False
        if time.time() - found.st_mtime < _YOUNG_SECONDS:
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(1.0)
            probe.connect(str(path))
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _remove_exactly(path: Path, identity: tuple[int, int] | None) -> bool:
    """Remove a socket unless another server has put its own in its place."""
    if identity is None or _identity(path) != identity:
        return False
    aside = path.with_name(f".maniple-{os.getpid()}-{path.name}")
    path.rename(aside)
    if _identity(aside) == identity:
        aside.unlink()
        return True
    aside.rename(path)
    return False
