"""Draw pictures of a simulation through its cameras."""

from __future__ import annotations

import atexit
import copy
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.sim.display import RAYS, backend
from maniple.sim.gl import free_context, use_context

QUALITIES = ("lean", "fine")


class Painter(Protocol):
    """Something that draws."""

    def rgb(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: int,
        width: int | None = None,
        height: int | None = None,
    ) -> NDArray[np.uint8]:
        """Return a picture, (height, width, 3)."""
        ...

    def close(self) -> None:
        """Let go of the drawing memory."""
        ...


def painter(model: mujoco.MjModel, width: int, height: int, quality: str = "lean") -> Painter:
    """Return a painter for a model: GL where it works, rays where it does not."""
    if quality not in QUALITIES:
        raise BadConfig(f"quality is {quality!r}; it may be one of: {QUALITIES}.")
    chosen = backend()
    if chosen == RAYS:
        from maniple.sim.rays import RayPainter

        return RayPainter(width, height)
    return GLPainter(model, width, height, quality, chosen)


class GLPainter:
    """Draws with MuJoCo's own renderer, in the one GL context of this process."""

    def __init__(
        self, model: mujoco.MjModel, width: int, height: int, quality: str, gl: str
    ) -> None:
        self._gl = gl
        self._size = (width, height)
        use_context(gl)
        # Quality is read when the drawing context is made; the simulated model stays untouched.
        model = copy.copy(model)
        _set_quality(model, quality, width, height)
        self._scene = mujoco.MjvScene(model, model.ngeom + 200)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = quality == "fine"
        self._drawing: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self._offscreen = (width, height)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._perturb = mujoco.MjvPerturb()
        _keep_order()

    def rgb(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        camera: int,
        width: int | None = None,
        height: int | None = None,
    ) -> NDArray[np.uint8]:
        """Return a picture, (height, width, 3); camera -1 is a free view of everything."""
        width, height = width or self._size[0], height or self._size[1]
        use_context(self._gl)
        self._make_room(width, height)
        self._look_through(model, camera)
        view = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjv_updateScene(
            model,
            data,
            self._option,
            self._perturb,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._drawing)
        mujoco.mjr_render(view, self._scene, self._drawing)
        picture = np.empty((height, width, 3), np.uint8)
        mujoco.mjr_readPixels(picture, None, view, self._drawing)
        return picture[::-1]

    def close(self) -> None:
        """Free the drawing memory; the context stays for other painters."""
        if self._drawing is not None:
            use_context(self._gl)
            self._drawing.free()
            self._drawing = None

    def _make_room(self, width: int, height: int) -> None:
        has = self._offscreen
        if width > has[0] or height > has[1]:
            self._offscreen = (max(width, has[0]), max(height, has[1]))
            mujoco.mjr_resizeOffscreen(*self._offscreen, self._drawing)

    def _look_through(self, model: mujoco.MjModel, camera: int) -> None:
        if camera >= 0:
            self._camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
            self._camera.fixedcamid = camera
        else:
            mujoco.mjv_defaultFreeCamera(model, self._camera)


def _set_quality(model: mujoco.MjModel, quality: str, width: int, height: int) -> None:
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    shapes = model.vis.quality
    if quality == "lean":
        # Measured: a third of the default's cost, and no visible difference at 128 x 128.
        shapes.offsamples, shapes.shadowsize = 0, 0
        shapes.numslices, shapes.numstacks, shapes.numquads = 12, 8, 1
    else:
        shapes.offsamples, shapes.shadowsize = 4, 2048
        shapes.numslices, shapes.numstacks, shapes.numquads = 28, 16, 4


def _keep_order() -> None:
    atexit.unregister(free_context)
    atexit.register(free_context)
