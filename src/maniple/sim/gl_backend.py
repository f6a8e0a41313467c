"""Choose how to draw on this machine by trying: EGL, OSMesa, GLFW, or no GL at all."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from maniple.core.atomic import write_text
from maniple.core.child import python_code
from maniple.core.errors import BadConfig
from maniple.core.flock import lock_file
from maniple.sim.xvfb import SWITCHES, wants_own_display

GL_BACKENDS = ("egl", "osmesa", "glfw")
RAYS = "rays"
"""Drawing with MuJoCo's ray caster, which needs no GL library."""

INSTALL = {
    "egl": "apt-get install libegl1 libgl1",
    "osmesa": "apt-get install libosmesa6",
    "glfw": "apt-get install xvfb xauth libgl1 libgl1-mesa-dri libglx-mesa0",
}

_PROBE = "from maniple.sim.gl_context import try_backend; try_backend({name!r})"
_PROBE_SECONDS = 60
# Long enough for all workers of a run to learn it, short enough for a user who installs a driver.
_RAYS_SECONDS = 60


@functools.cache
def backend() -> str:
    """Return the backend to draw with: MANIPLE_GL if set, else the first that works."""
    asked = os.environ.get("MANIPLE_GL", "").lower()
    if asked:
        if asked not in (*GL_BACKENDS, RAYS):
            raise BadConfig(
                f"MANIPLE_GL is {asked!r}; it may be one of: {', '.join((*GL_BACKENDS, RAYS))}."
            )
        return asked
    remembered = _remembered()
    if remembered is not None:
        return remembered
    with _turn():
        chosen = _remembered()
        if chosen is None:
            chosen = next((name for name in GL_BACKENDS if why_not(name) is None), RAYS)
            _remember(chosen)
        return chosen


def reasons() -> dict[str, str | None]:
    """Try every GL backend; return why each one fails, None for those that work."""
    return {name: why_not(name) for name in GL_BACKENDS}


@functools.cache
def why_not(name: str) -> str | None:
    """Try a GL backend in a process of its own; return why it fails, or None if it works.

    A missing or broken driver can end the process that tries it, or hang. GLFW gets an Xvfb
    where there is no DISPLAY.
    """
    if name == "glfw":
        if wants_own_display():
            if shutil.which("Xvfb") is None:
                return "Xvfb is not installed, and there is no other display"
        elif not os.environ.get("DISPLAY"):
            return f"there is no DISPLAY, and {' or '.join(SWITCHES)} is 0"
    env = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    try:
        done = subprocess.run(
            python_code(_PROBE.format(name=name)),
            env=env,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it gave no answer in {_PROBE_SECONDS} s"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    if not lines:
        return f"it ended with code {done.returncode}"
    if "'NoneType' object has no attribute" in lines[-1]:
        # What PyOpenGL says where it has found no library to call.
        return "its library is not installed"
    return re.sub(r"^maniple\.core\.errors\.\w+: ", "", lines[-1].strip())


def _memory() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "maniple" / "gl.json"


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Let one process try at a time, so that the workers of a run learn from the first."""
    try:
        _memory().parent.mkdir(parents=True, exist_ok=True)
        lock = _memory().with_suffix(".lock").open("w")
    except OSError:
        yield  # A home that cannot be written only costs another try.
        return
    with lock:
        lock_file(lock)
        yield


def _machine() -> dict[str, str]:
    """What the choice depends on: another machine, boot or environment must try again."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    try:
        libraries = str(Path("/etc/ld.so.cache").stat().st_mtime_ns)
    except OSError:
        libraries = ""
    return {
        "boot": boot,
        "python": sys.executable,
        "libraries": libraries,
        "xvfb": shutil.which("Xvfb") or "",
        "display": "own" if wants_own_display() else os.environ.get("DISPLAY", ""),
    }


def _remembered() -> str | None:
    try:
        found = json.loads(_memory().read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("machine") != _machine():
        return None
    chosen, when = found.get("backend"), found.get("time", 0)
    if chosen == RAYS:
        return RAYS if abs(time.time() - when) < _RAYS_SECONDS else None
    return chosen if chosen in GL_BACKENDS else None


def _remember(chosen: str) -> None:
    found = {"machine": _machine(), "backend": chosen, "time": time.time()}
    # A home that cannot be written only costs another try.
    with contextlib.suppress(OSError):
        write_text(_memory(), json.dumps(found))
