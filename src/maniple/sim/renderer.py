"""Draw many rows through many cameras in one call: what a renderer is, and which there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, closest, unknown
from maniple.core.lookup import load

if TYPE_CHECKING:
    import mujoco

RENDERERS: dict[str, str] = {
    "fast": "maniple.sim.fast.renderer:FastRenderer",
    "mujoco": "maniple.sim.gl_renderer:GLRenderer",
    "rays": "maniple.sim.ray_renderer:RayRenderer",
    "splat": "maniple.splat.renderer:SplatRenderer",
    "hybrid": "maniple.splat.hybrid:HybridRenderer",
}
AUTO = "auto"
"""fast where it can draw the scene, else mujoco where GL works, else rays."""
QUALITIES = ("lean", "fine")
DRAWN_KINDS = ("rgb", "depth", "segmentation")
"""What a renderer draws itself; mask and point_cloud are derived from these."""

Pictures = Mapping[tuple[int, str], NDArray]
"""(camera, kind) to an array whose first axis is the row, in the order of the rows asked for."""


class RenderSource(Protocol):
    """The rows that a renderer draws."""

    model: mujoco.MjModel
    """The model that all rows share, before randomisation and colours."""
    threads: int
    """How many threads may draw, the caller's included."""

    def load(self, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Return a row's own model and state; they are valid until the next call."""
        ...

    def field(self, name: str) -> tuple[NDArray, bool]:
        """Return an array of MjData or MjModel as it is now, and whether its first axis is the row.

        Places (`geom_xpos`, `cam_xmat` and so on) have one; colours are those that are drawn.
        """
        ...


class Renderer(Protocol):
    """Draws rows. It is made as `kind(source, size, quality)`, size being (height, width)."""

    name: ClassVar[str]
    wants_one_process: ClassVar[bool]
    """Whether one process should draw all rows (CUDA), instead of every worker its own."""

    def render(
        self, rows: Sequence[int], cameras: Sequence[int], kinds: Sequence[str], out: Pictures
    ) -> None:
        """Draw rows through cameras (-1: a free view) into `out[camera, kind][k]` for `rows[k]`.

        rgb is (height, width, 3) uint8, depth (height, width) metres along the optical axis,
        segmentation (height, width) geom numbers, -1 where there is nothing.
        """
        ...

    def close(self) -> None:
        """Free the drawing memory; a second call does nothing."""
        ...


def make_renderer(
    name: str, source: RenderSource, size: tuple[int, int], quality: str = "lean"
) -> Renderer:
    """Make a renderer by its name in RENDERERS, or the best one for 'auto'."""
    return renderer_class(resolve_renderer(name, source.model))(source, size, quality)


def resolve_renderer(name: str, model: mujoco.MjModel) -> str:
    """Return which renderer a name stands for, with this model on this machine."""
    if name != AUTO:
        return name
    from maniple.sim.fast.renderer import compiled_library
    from maniple.sim.fast.support import why_not

    can_be_fast = why_not(model) is None
    if can_be_fast and compiled_library() is not None:
        return "fast"
    from maniple.sim.gl_backend import RAYS, backend

    if backend() != RAYS:
        return "mujoco"
    # Without its compiled part 'fast' is slow, but it draws the same pictures.
    return "fast" if can_be_fast else "rays"


def wants_one_process(name: str) -> bool:
    """Whether a renderer must not be multiplied by worker processes; 'auto' never chooses one."""
    return name != AUTO and renderer_class(name).wants_one_process


def renderer_class(name: str) -> Any:
    """Return the class of a renderer."""
    check_renderer(name)
    return load(RENDERERS[name])


def check_renderer(name: str) -> None:
    """Raise BadConfig unless a renderer has this name."""
    if name not in (AUTO, *RENDERERS):
        hint = closest(str(name), (AUTO, *RENDERERS))
        raise BadConfig(f"renderer is {name!r}.{hint} There are: {AUTO}, {', '.join(RENDERERS)}.")


def camera_index(model: mujoco.MjModel, camera: str | int) -> int:
    """Return a camera's number from its name or number."""
    if isinstance(camera, str):
        known = [model.camera(i).name for i in range(model.ncam)]
        if camera not in known:
            raise unknown("camera", camera, known, f"the scene's own: {', '.join(known)}")
        return known.index(camera)
    if not 0 <= camera < model.ncam:
        raise BadConfig(f"There is no camera {camera}; the scene has {model.ncam}.")
    return int(camera)


def render_still(
    renderer: Renderer, row: int, camera: int, width: int, height: int
) -> NDArray[np.uint8]:
    """Return one new colour picture of one row, (height, width, 3)."""
    rgb = np.empty((1, height, width, 3), np.uint8)
    renderer.render([row], [camera], ("rgb",), {(camera, "rgb"): rgb})
    return rgb[0]
