"""The one GL context that a process draws with."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig, ManipleError, NoDisplay
from maniple.core.rank import Rank
from maniple.sim.xvfb import INSTALL, SWITCHES, Xvfb, wants_own_display

_context: Any = None
_drawing = threading.RLock()
"""A context is current in one thread at a time: the others wait."""
_screen: Xvfb | None = None
"""Kept until the process ends: GLFW stays connected to it, and cannot live without it."""


@contextlib.contextmanager
def current_context(backend: str) -> Iterator[None]:
    """Draw with the process's context, which is created at the first call.

    It is current in this thread until the block ends, and in none afterwards.
    """
    with _drawing:
        if _context is None:
            _try_to_make_context(backend)
        assert _context is not None
        with _context.as_current():
            yield


def _try_to_make_context(backend: str) -> None:
    try:
        _make_context(backend)
    except (NoDisplay, BadConfig):
        raise
    except Exception as error:
        raise ManipleError(
            f"The GL backend {backend!r} does not work here: {error}. "
            "Type 'maniple doctor' to see what does."
        ) from error


def _make_context(backend: str) -> None:
    global _context
    # Software rasterising threads fight with the simulation for the cores.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    if backend == "egl":
        _take_device_of_rank()
    with _display() if backend == "glfw" else contextlib.nullcontext():
        _context = importlib.import_module(f"mujoco.{backend}").GLContext(64, 64)


@contextlib.contextmanager
def _display() -> Iterator[None]:
    """Show GLFW a display while it connects: an own Xvfb, or the DISPLAY that there is.

    An own one is not left in the environment, where it would promise a window that people see.
    """
    global _screen
    given = os.environ.get("DISPLAY")
    if not wants_own_display():
        if not given:
            off = next(name for name in SWITCHES if os.environ.get(name) == "0")
            raise NoDisplay(
                f"There is no DISPLAY, and {off}=0 forbids an own one. "
                f"Type 'unset {off}', or start with 'xvfb-run -a' ({INSTALL})."
            )
        yield
        return
    if _screen is None or not _screen.is_alive:
        _screen = Xvfb()
        atexit.register(_leave, _screen)
    os.environ["DISPLAY"] = _screen.display
    try:
        yield
    finally:
        if given is None:
            del os.environ["DISPLAY"]
        else:
            os.environ["DISPLAY"] = given


def _leave(screen: Xvfb) -> None:
    # In this order: a display that goes before its context takes the process with it.
    free_context()
    screen.close()


def _take_device_of_rank() -> None:
    """Spread torchrun's processes over the GPUs, unless the user has."""
    rank = Rank.here()
    if rank.local_world_size < 2 or os.environ.get("MUJOCO_EGL_DEVICE_ID"):
        return
    device = device_of(rank.local_rank, _cuda_devices(), _egl_devices())
    if device is not None:
        os.environ["MUJOCO_EGL_DEVICE_ID"] = str(device)


def device_of(local_rank: int, cuda_devices: int, egl_devices: int) -> int | None:
    """Return the EGL device of a rank, or None where there is nothing to choose from.

    EGL lists software renderers too, after the GPUs: where there is a GPU they are left out.
    """
    if cuda_devices:
        return local_rank % cuda_devices
    return local_rank % egl_devices if egl_devices > 1 else None


def _cuda_devices() -> int:
    """Count the GPUs that this process may use; MuJoCo numbers devices within them."""
    there = [path for path in Path("/dev").glob("nvidia*") if path.name[6:].isdigit()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if there and visible:
        return len([word for word in visible.split(",") if word.strip()])
    return len(there)


def _egl_devices() -> int:
    return len(importlib.import_module("mujoco.egl").EGL.eglQueryDevicesEXT())


def free_context() -> None:
    """Give the context back; OSMesa complains at exit otherwise."""
    global _context
    if _context is not None:
        _context.free()
        _context = None


def try_backend(backend: str) -> None:
    """Draw a small picture, or raise."""
    import mujoco
    import numpy as np

    _make_context(backend)
    _context.make_current()
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(size=[0.1, 0.1, 0.1], rgba=[1, 0, 0, 1])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    scene = mujoco.MjvScene(model, 10)
    drawing = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, drawing)
    camera = mujoco.MjvCamera()
    camera.distance = 0.5
    option, perturb = mujoco.MjvOption(), mujoco.MjvPerturb()
    everything = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, data, option, perturb, camera, everything, scene)
    picture = np.zeros((32, 32, 3), np.uint8)
    view = mujoco.MjrRect(0, 0, 32, 32)
    mujoco.mjr_render(view, scene, drawing)
    mujoco.mjr_readPixels(picture, None, view, drawing)
    drawing.free()
    free_context()
    if picture.max() == 0:
        raise ManipleError(f"The GL backend {backend!r} draws black pictures.")
