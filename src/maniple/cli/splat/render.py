"""maniple splat render: pictures of a scene through the cameras of its model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from maniple.core.errors import BadConfig
from maniple.core.spec import check_picture_size


@dataclass(frozen=True)
class Options:
    """What to draw, and where to."""

    subject: tyro.conf.Positional[str]
    """A task, or a model file NAME.xml."""

    scene: Path | None = None
    """Scene file; None: that of the subject, made once where there is none."""

    renderer: str = "splat"
    """splat, hybrid, or another renderer to compare with."""

    out: Path = Path("splats")
    """Folder for the pictures, one for each camera."""

    width: int = 512
    """Pixels."""

    height: int = 512
    """Pixels."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Draw one state through every camera."""
    from maniple.cli.splat.subject import load_subject
    from maniple.data.video import save_png
    from maniple.sim.renderer import check_renderer, make_renderer, render_still
    from maniple.splat.poses import PoseSource

    check_renderer(options.renderer)
    if not (1 <= options.width <= 8192 and 1 <= options.height <= 8192):
        raise BadConfig(f"A picture of {options.width} x {options.height} cannot be drawn.")
    if options.out.exists() and not options.out.is_dir():
        raise BadConfig(f"{options.out} is a file; the pictures need a folder.")
    model, seen = load_subject(options.subject)
    source = PoseSource(model, seen[:8])
    source.scene = str(options.scene) if options.scene else None
    size = (options.height, options.width)
    check_picture_size("height, width", size)
    renderer = make_renderer(options.renderer, source, size, "lean")
    files: list[str] = []
    for camera in range(model.ncam):
        path = options.out / f"{_file_name(model.camera(camera).name) or camera}.png"
        if str(path) in files:
            path = path.with_name(f"{path.stem}_{camera}.png")
        picture = render_still(renderer, 0, camera, options.width, options.height)
        try:
            save_png(path, picture)
        except OSError as error:
            raise BadConfig(f"{path} cannot be written: {error.strerror}.") from None
        files.append(str(path))
        if not options.json:
            print(path)
    renderer.close()
    return {"pictures": files, "renderer": options.renderer}


def _file_name(camera: str) -> str:
    """Return a camera's name without what would be another folder."""
    return "".join(c if c.isalnum() or c in "_-." else "_" for c in camera)
