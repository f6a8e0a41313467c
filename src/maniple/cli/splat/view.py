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
        from maniple.view.server import PageServer
        from maniple.view.splats import Splats

        # Only this machine may look: there is no password.
        self._server = PageServer(port=port)
        self.port = self._server.port
        self._source = source
        self._splats = Splats(self._server.viser.scene, scene, source)
        self.gaussians = self._splats.gaussians
        self._add_cameras()
        self.show(0)

    def _add_cameras(self) -> None:
        import numpy as np

        from maniple.splat.align import FLIP
        from maniple.splat.cloud import quats_of
        from maniple.view.splats import look_from

        viser = self._server.viser
        pos, mat = (self._source.field(name)[0][0] for name in ("cam_xpos", "cam_xmat"))
        model = self._source.model
        for camera in range(model.ncam):
            turn = mat[camera].reshape(3, 3) @ FLIP
            viser.scene.add_camera_frustum(
                f"/cameras/{model.camera(camera).name or camera}",
                fov=float(np.radians(model.cam_fovy[camera])),
                aspect=1.0,
                scale=0.08,
                wxyz=quats_of(turn[None])[0],
                position=pos[camera],
            )
        look_from(viser, pos[0], mat[0].reshape(3, 3)[:, 2])

    def show(self, frame: int) -> None:
        """Put every body where it is in one of the source's states."""
        from maniple.splat.cloud import quats_of

        row = frame % len(self._source)
        xpos, xmat = (self._source.field(name)[0][row] for name in ("xpos", "xmat"))
        self._splats.move(xpos, quats_of(xmat.reshape(-1, 3, 3)))

    def close(self) -> None:
        """Stop serving."""
        self._server.close()
