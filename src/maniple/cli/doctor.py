"""maniple doctor: what works on this machine, and what to type if something does not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

OK, WARN, FAIL = "OK", "WARN", "FAIL"


@dataclass(frozen=True)
class Options:
    """How to report."""

    json: bool = False
    """Print one JSON object instead of a table."""


@dataclass(frozen=True)
class Finding:
    """The result of one check; `code` is a heading in docs/troubleshooting.md."""

    code: str
    status: str
    found: str
    type_this: str = ""


def run(options: Options) -> dict[str, Any]:
    """Run all checks and print what they found."""
    findings = list(examine())
    answer = {
        "ok": all(f.status != FAIL for f in findings),
        "checks": [asdict(f) for f in findings],
    }
    if not options.json:
        _show(findings)
    return answer


def examine() -> Iterator[Finding]:
    """Yield every finding; a check that raises is a finding too."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:
            code = check.__name__.strip("_").replace("_", "-")
            yield Finding(code, FAIL, f"the check itself failed: {error}")


def _python() -> Iterator[Finding]:
    is_new = sys.version_info >= (3, 11)
    yield Finding("python", OK if is_new else FAIL, platform.python_version())


def _packages() -> Iterator[Finding]:
    import gymnasium
    import mujoco

    found = f"mujoco {mujoco.__version__}, gymnasium {gymnasium.__version__}"
    try:
        import mujoco.batch

        yield Finding("packages", OK, found)
    except ImportError:
        fix = "pip install -c constraints.txt -e ."
        yield Finding("packages", FAIL, f"{found}: this MuJoCo has no mujoco.batch", fix)


def _compiled() -> Iterator[Finding]:
    from maniple.core.quick import compiled
    from maniple.sim.fast.renderer import compiled_library
    from maniple.sim.kernel.library import best_width

    is_off = bool(os.environ.get("MANIPLE_PLAIN"))
    fix = "apt-get install g++ python3-dev && pip install -c constraints.txt -e ."
    fix = "unset MANIPLE_PLAIN" if is_off else fix
    why = " (MANIPLE_PLAIN is set)" if is_off else ""
    if compiled is not None:
        yield Finding("compiled", OK, "the C code that speeds up single environments is there")
    else:
        found = f"not compiled: single environments take 1.4 times as long{why}"
        yield Finding("compiled", WARN, found, fix)
    library = compiled_library()
    if library is not None:
        how = "AVX2, 8 rays at a time" if best_width(library) == 8 else "4 rays at a time"
        yield Finding("renderer", OK, f"scenes of primitives are drawn without GL ({how})")
    else:
        found = f"the renderer of primitives is not compiled: pictures take much longer{why}"
        yield Finding("renderer", WARN, found, fix)


def _splats() -> Iterator[Finding]:
    """Step the mobile Piper, which draws splats by itself."""
    from maniple.registry import make_vec
    from maniple.sim.kernel.library import best_width
    from maniple.splat.raster import compiled_library

    fix = "apt-get install g++ python3-dev && pip install -c constraints.txt -e ."
    library = compiled_library()
    if library is None:
        found = "the rasteriser of splats is not compiled: a picture takes about a second"
        yield Finding("splats", WARN, found, fix)
        return
    envs = make_vec("PiperMobileRobot-v0", 2)
    try:
        envs.reset(seed=0)
        obs, *_ = envs.step(envs.action_space.sample() * 0)
        is_seen = obs["rgb"].std() > 5
        renderer = envs.get_attr("renderer")[0]
    finally:
        envs.close()
    text = (
        f"PiperMobileRobot-v0 steps, drawn by {renderer!r}, {best_width(library)} pixels at a time"
    )
    yield Finding("splats", OK if is_seen else FAIL, text if is_seen else f"{text}, but blank")


def _cores() -> Iterator[Finding]:
    from maniple.core.rank import Rank, allowed_cpus, cgroup_cpus

    quota = cgroup_cpus()
    allowed = len(allowed_cpus())
    text = f"{os.cpu_count()} cores, {allowed} allowed"
    text += f", cgroup quota {quota:g}" if quota else ", no cgroup quota"
    yield Finding("cores", OK, f"{text}: {Rank.here().num_cpus()} threads will be used")


def _memory() -> Iterator[Finding]:
    import psutil

    from maniple.core.rank import cgroup_memory

    limit = cgroup_memory()
    free = psutil.virtual_memory().available
    text = f"{free / 2**30:.1f} GB free"
    text += f", cgroup limit {limit / 2**30:.1f} GB" if limit else ", no cgroup limit"
    is_enough = min(free, limit or free) > 2**30
    yield Finding("memory", OK if is_enough else WARN, text)


def _shared_memory() -> Iterator[Finding]:
    path = Path("/dev/shm")
    if not path.is_dir():
        yield Finding("shared-memory", OK, "/dev/shm is missing; maniple does not need it (memfd)")
        return
    size = shutil.disk_usage(path)
    left = len(list(path.glob("psm_*")))
    text = f"/dev/shm {size.total / 2**20:.0f} MB, {size.free / 2**20:.0f} MB free"
    if left:
        yield Finding("shared-memory", WARN, f"{text}; {left} leaked psm_* files of other programs",
                      "rm /dev/shm/psm_*")  # fmt: skip
    else:
        yield Finding("shared-memory", OK, f"{text}; maniple does not need it (memfd)")


def _drawing() -> Iterator[Finding]:
    from maniple.sim.gl_backend import INSTALL, backend
    from maniple.sim.gl_backend import reasons as try_all
    from maniple.sim.xvfb import wants_own_display

    asked = os.environ.get("MUJOCO_GL")
    if asked and asked not in ("egl", "osmesa", "glfw", "disable", "off"):
        yield Finding("mujoco-gl", WARN, f"MUJOCO_GL is {asked!r}", "unset MUJOCO_GL")
    reasons = try_all()
    works = [name for name, reason in reasons.items() if reason is None]
    for name, reason in reasons.items():
        if reason is None:
            where = " in an Xvfb of its own" if name == "glfw" and wants_own_display() else ""
            yield Finding(f"gl-{name}", OK, f"draws{where}")
        else:
            # One working backend is enough: the others are no reason to worry.
            status = OK if works else WARN
            yield Finding(
                f"gl-{name}", status, f"not used: {reason}", "" if works else INSTALL[name]
            )
    chosen = backend()
    note = "" if works else " (no GL library works: meshes come from the ray caster, slowly)"
    text = f"for what the renderer of primitives cannot draw, {chosen} is used{note}"
    yield Finding("drawing", OK if works else WARN, text)


def _xvfb() -> Iterator[Finding]:
    from time import perf_counter

    from maniple.core.errors import ManipleError
    from maniple.sim.xvfb import INSTALL, Xvfb, stale_sockets

    path = shutil.which("Xvfb")
    if path is None:
        text = "not installed; only CoppeliaSim and GLFW need it"
        yield Finding("xvfb", OK, text, INSTALL)
        return
    start = perf_counter()
    try:
        Xvfb().close()
    except ManipleError as error:
        yield Finding("xvfb", WARN, str(error), INSTALL)
        return
    text = f"{path}: a display started and stopped in {perf_counter() - start:.2f} s"
    stale = stale_sockets()
    if stale:
        text += f"; {len(stale)} sockets of killed servers"
        yield Finding("xvfb", WARN, text, f"rm {' '.join(map(str, stale))}")
    else:
        yield Finding("xvfb", OK, text)


def _codecs() -> Iterator[Finding]:
    import av

    has = [name for name in ("libx264", "h264", "mpeg4") if name in av.codecs_available]
    found = f"PyAV {av.__version__}: {', '.join(has) or 'no video encoder'}"
    if "libx264" in has:
        yield Finding("codecs", OK, found)
    else:
        yield Finding("codecs", WARN, found, "pip install -c constraints.txt av")


def _coppeliasim() -> Iterator[Finding]:
    from maniple.core.errors import ManipleError
    from maniple.envs.coppelia import INSTALL, check_version, find_root

    try:
        root = find_root()
    except ManipleError as error:
        if not os.environ.get("COPPELIASIM_ROOT"):
            yield Finding("coppeliasim", OK, "COPPELIASIM_ROOT is not set: tasks run on MuJoCo")
        else:
            yield Finding("coppeliasim", WARN, str(error), "unset COPPELIASIM_ROOT")
        return
    try:
        version = check_version(root)
    except ManipleError as error:
        yield Finding("coppeliasim", WARN, str(error), INSTALL)
        return
    text = ".".join(map(str, version)) if version else "its folder does not name its version"
    yield Finding("coppeliasim", OK if version else WARN, f"{root}, {text}")
    yield from _rlbench(root)


def _rlbench(root: Path) -> Iterator[Finding]:
    """Launch the simulator, in a process of its own that may crash or hang."""
    from importlib.util import find_spec

    from maniple.envs.rlbench.probe import probe
    from maniple.envs.rlbench.recipe import INSTALL

    missing = [name for name in ("rlbench", "pyrep") if find_spec(name) is None]
    if missing:
        yield Finding("rlbench", WARN, f"{' and '.join(missing)} is not installed", INSTALL)
        return
    fixes = {False: INSTALL, True: "bash scripts/setup_headless.sh"}
    for with_camera, what in ((False, "without cameras"), (True, "with a camera")):
        result = probe(root, with_camera)
        if result["error"]:
            text = f"{what}: {result['error']} (last worked: {result['stage']})"
            yield Finding("rlbench", WARN, text, fixes[with_camera])
            return
    yield Finding("rlbench", OK, "launched, reset and stepped, without cameras and with one")


def _cuda() -> Iterator[Finding]:
    from importlib.util import find_spec

    has_driver = Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi")
    if find_spec("torch") is None:
        fix = "pip install -c constraints.txt -e '.[train]'"
        yield Finding("cuda", OK, "torch is not installed; only learning needs it", fix)
    else:
        text = (
            "an NVIDIA driver is installed"
            if has_driver
            else "no NVIDIA driver: learning uses CPUs"
        )
        yield Finding("cuda", OK, text)


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    _python,
    _packages,
    _compiled,
    _splats,
    _cores,
    _memory,
    _shared_memory,
    _drawing,
    _xvfb,
    _codecs,
    _coppeliasim,
    _cuda,
)


def _show(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    colours = {OK: "green", WARN: "yellow", FAIL: "red"}
    table = Table(box=None, pad_edge=False)
    for name in ("", "check", "found", "type this"):
        table.add_column(name, overflow="fold")
    for f in findings:
        status = f"[{colours[f.status]}]{f.status}[/]"
        table.add_row(status, f.code, escape(f.found), escape(f.type_this))
    Console().print(table)
