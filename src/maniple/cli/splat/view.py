"""maniple splat view: splats in the browser, with the robot moving."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from maniple.core.errors import BadConfig

if TYPE_CHECKING:
    from maniple.splat.poses import PoseSource
    from maniple.splat.scene import Scene


@dataclass(frozen=True)
class Options:
    """What to look at."""

    subject: tyro.conf.Positional[str]
    """A task, or a model file NAME.xml."""

    scene: Path | None = None
    """Scene file; None: that of the subject, made once where there is none."""

    port: int = 8080
    """Port on this machine; the page is not seen from others."""

    seconds: float = 0.0
    """Close after so long; 0: when Ctrl-C is pressed."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Serve the page until it is closed."""
    from maniple.cli.splat.subject import load_subject
    from maniple.core.optional import require
    from maniple.splat.poses import PoseSource
    from maniple.splat.store import scene_for

    require("viser")
    if not 0 <= options.port < 65536 or options.seconds < 0:
        raise BadConfig(f"port is {options.port} and seconds is {options.seconds}.")
    model, seen = load_subject(options.subject)
    source = PoseSource(model, seen)
    source.scene = str(options.scene) if options.scene else None
    page = Page(scene_for(source), source, options.port)
    if not options.json:
        print(f"http://127.0.0.1:{page.port}  (Ctrl-C ends it)")
    began, frame = time.monotonic(), 0
    try:
        while not options.seconds or time.monotonic() - began < options.seconds:
            page.show(frame)
            frame += 1
            time.sleep(0.1)
    finally:
        page.close()
    return {"url": f"http://127.0.0.1:{page.port}", "frames": frame, "gaussians": page.gaussians}


class Page:
    """A page with one node of splats for each body, and the cameras of the model."""

    def __init__(self, scene: Scene, source: PoseSource, port: int) -> None:
        import numpy as np
        import viser

        from maniple.splat.compiled import CompiledScene

        # Only this machine may look: there is no password.
        self._server = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
        self.port = self._server.get_port()
        self._source = source
        self._compiled = compiled = CompiledScene(scene, source.model)
        self._nodes = []
        self.gaussians = 0
        for number, group in enumerate(compiled.bound):
            factor = group.factors
            node = self._server.scene.add_gaussian_splats(
                f"/splats/{number}",
                centers=group.cloud.means,
                covariances=(factor @ factor.transpose(0, 2, 1)).astype(np.float32),
                rgbs=np.clip(self._colours(group), 0, 1).astype(np.float32),
                opacities=group.cloud.opacities[:, None],
            )
            self._nodes.append((group.body, node))
            self.gaussians += len(group.cloud)
        self._add_cameras()
        self.show(0)

    def _colours(self, group: Any) -> Any:
        """Colours as the first camera sees them: the page has neither harmonics nor lights."""
        from maniple.splat.raster import Raster
        from maniple.splat.reference import colours_of
        from maniple.splat.structs import ROW_FIELDS

        fields = {name: self._source.field(name) for name in ROW_FIELDS}
        row = {name: array[0] if has else array for name, (array, has) in fields.items()}
        raster = Raster(self._compiled, self._source, layer_bytes=0)
        return colours_of(self._compiled, group, row, raster.camera(row, -1, (64, 64)))[0]

    def _add_cameras(self) -> None:
        import numpy as np

        from maniple.splat.align import FLIP
        from maniple.splat.cloud import quats_of

        pos, mat = (self._source.field(name)[0][0] for name in ("cam_xpos", "cam_xmat"))
        model = self._source.model
        for camera in range(model.ncam):
            turn = mat[camera].reshape(3, 3) @ FLIP
            self._server.scene.add_camera_frustum(
                f"/cameras/{model.camera(camera).name or camera}",
                fov=float(np.radians(model.cam_fovy[camera])),
                aspect=1.0,
                scale=0.08,
                wxyz=quats_of(turn[None])[0],
                position=pos[camera],
            )
        # From behind the first camera, at what it looks at.
        back = mat[0].reshape(3, 3)[:, 2]
        self._server.initial_camera.position = tuple((pos[0] + 0.4 * back).tolist())
        self._server.initial_camera.look_at = tuple((pos[0] - 0.5 * back).tolist())
        self._server.initial_camera.up = (0.0, 0.0, 1.0)

    def show(self, frame: int) -> None:
        """Put every body where it is in one of the source's states."""
        from maniple.splat.cloud import quats_of

        row = frame % len(self._source)
        xpos, xmat = (self._source.field(name)[0][row] for name in ("xpos", "xmat"))
        for body, node in self._nodes:
            node.position = xpos[body]
            node.wxyz = quats_of(xmat[body].reshape(1, 3, 3))[0]

    def close(self) -> None:
        """Stop serving."""
        self._server.stop()
