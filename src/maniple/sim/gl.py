"""The one GL context that a process draws with."""

from __future__ import annotations

import importlib
import os
from typing import Any

from maniple.core.errors import ManipleError

_context: Any = None


def use_context(backend: str) -> None:
    """Make the process's context current, creating it at the first call."""
    if _context is None:
        try:
            _make_context(backend)
        except Exception as error:
            raise ManipleError(
                f"The GL backend {backend!r} does not work here: {error}. "
                "Type 'maniple doctor' to see what does."
            ) from error
    assert _context is not None
    _context.make_current()


def _make_context(backend: str) -> None:
    global _context
    # Software rasterising threads fight with the simulation for the cores.
    os.environ.setdefault("LP_NUM_THREADS", "0")
    _context = importlib.import_module(f"mujoco.{backend}").GLContext(64, 64)


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
