"""Draw with MuJoCo's own OpenGL renderer."""

from __future__ import annotations

import atexit
import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.sim.gl_backend import RAYS, backend
from maniple.sim.gl_context import current_context, free_context
from maniple.sim.renderer import Pictures, RenderSource


class GLRenderer:
    """Draws one picture after the other in the one GL context of this process."""

    name: ClassVar[str] = "mujoco"
    wants_one_process: ClassVar[bool] = False

    def __init__(self, source: RenderSource, size: tuple[int, int], quality: str) -> None:
        self._source = source
        self._gl = backend()
        if self._gl == RAYS:
            raise BadConfig(
                "renderer is 'mujoco', but no GL library works here: 'maniple doctor' tells why. "
                "renderer='rays' needs none."
            )
        with current_context(self._gl):
            self._prepare(size, quality)
        self._option = mujoco.MjvOption()
        self._camera = mujoco.MjvCamera()
        self._perturb = mujoco.MjvPerturb()
        _keep_order()

    def _prepare(self, size: tuple[int, int], quality: str) -> None:
        height, width = size
        # Quality is read when the drawing context is made; the simulated model stays untouched.
        model = copy.copy(self._source.model)
        _set_quality(model, quality, width, height)
        self._scene = mujoco.MjvScene(model, model.ngeom + 200)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self._scene.flags[flag] = quality == "fine"
        self._drawing: Any = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        # Reversed depth (1 near, 0 far) keeps millimetres at a distance in 32 bits.
        self._drawing.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._offscreen = (width, height)

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras; see `Renderer.render`."""
        with current_context(self._gl):
            for k, row in enumerate(rows):
                model, data = self._source.load(row)
                for camera in cameras:
                    self._draw(model, data, camera, {kind: out[camera, kind][k] for kind in kinds})

    def _draw(
        self, model: mujoco.MjModel, data: mujoco.MjData, camera: int, into: dict[str, NDArray]
    ) -> None:
        """Fill the pictures; colour and depth come from one pass, segmentation from another."""
        height, width = next(iter(into.values())).shape[:2]
        self._make_room(width, height)
        self._look_through(model, camera)
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
        view = mujoco.MjrRect(0, 0, width, height)
        if "rgb" in into or "depth" in into:
            self._draw_colour(model, view, into)
        if "segmentation" in into:
            self._draw_segmentation(view, into["segmentation"])

    def _draw_colour(
        self, model: mujoco.MjModel, view: mujoco.MjrRect, into: dict[str, NDArray]
    ) -> None:
        size = (view.height, view.width)
        rgb = np.empty((*size, 3), np.uint8) if "rgb" in into else None
        depth = np.empty(size, np.float32) if "depth" in into else None
        mujoco.mjr_render(view, self._scene, self._drawing)
        mujoco.mjr_readPixels(rgb, depth, view, self._drawing)
        if rgb is not None:
            into["rgb"][...] = rgb[::-1]
        if depth is not None:
            near = model.vis.map.znear * model.stat.extent
            far = model.vis.map.zfar * model.stat.extent
            into["depth"][...] = (near * far / (near + depth * (far - near)))[::-1]

    def _draw_segmentation(self, view: mujoco.MjrRect, into: NDArray) -> None:
        flags = (mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR)
        for flag in flags:
            self._scene.flags[flag] = 1
        codes = np.empty((view.height, view.width, 3), np.uint8)
        mujoco.mjr_render(view, self._scene, self._drawing)
        mujoco.mjr_readPixels(codes, None, view, self._drawing)
        for flag in flags:
            self._scene.flags[flag] = 0
        wide = codes[::-1].astype(np.int32)
        segment = wide[..., 0] + (wide[..., 1] << 8) + (wide[..., 2] << 16)
        geoms = np.full(self._scene.ngeom + 1, -1, np.int32)
        for shape in self._scene.geoms[: self._scene.ngeom]:
            if shape.segid >= 0 and int(shape.objtype) == int(mujoco.mjtObj.mjOBJ_GEOM):
                geoms[shape.segid + 1] = shape.objid
        into[...] = geoms[segment]

    def close(self) -> None:
        """Free the drawing memory; the context stays for other renderers."""
        if self._drawing is not None:
            with current_context(self._gl):
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
