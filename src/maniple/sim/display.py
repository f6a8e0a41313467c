"""Choose how to draw on this machine by trying: EGL, OSMesa, GLFW, or no GL at all."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from maniple.core.errors import BadConfig

GL_BACKENDS = ("egl", "osmesa", "glfw")
RAYS = "rays"
"""Drawing with MuJoCo's ray caster, which needs no GL library."""

INSTALL = {
    "egl": "apt-get install libegl1 libgl1",
    "osmesa": "apt-get install libosmesa6",
    "glfw": "apt-get install xvfb xauth libgl1 libgl1-mesa-dri libglx-mesa0, then xvfb-run -a",
}

_PROBE = "from maniple.sim.gl import try_backend; try_backend({name!r})"
_PROBE_SECONDS = 60


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
    chosen = next((name for name in GL_BACKENDS if why_not(name) is None), RAYS)
    _remember(chosen)
    return chosen


def why_not(name: str) -> str | None:
    """Try a GL backend in a process of its own; return why it fails, or None if it works.

    A missing or broken driver can end the process that tries it, or hang.
    """
    if name == "glfw" and not os.environ.get("DISPLAY"):
        return "there is no DISPLAY"
    env = {k: v for k, v in os.environ.items() if k not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE.format(name=name)],
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
    return lines[-1].strip() if lines else f"it ended with code {done.returncode}"


def _memory() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "maniple" / "gl.json"


def _machine() -> dict[str, str]:
    """What the choice depends on: another machine, boot or environment must try again."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return {"boot": boot, "python": sys.executable, "display": os.environ.get("DISPLAY", "")}


def _remembered() -> str | None:
    try:
        found = json.loads(_memory().read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("machine") != _machine():
        return None
    # No GL is never remembered: the user may have installed it since.
    return found["backend"] if found.get("backend") in GL_BACKENDS else None


def _remember(chosen: str) -> None:
    path = _memory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps({"machine": _machine(), "backend": chosen}))
        temporary.replace(path)
    except OSError:
        pass  # A home that cannot be written only costs another try.
