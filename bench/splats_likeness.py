"""How much shipped splats look like MuJoCo's pictures, in numbers and as a sheet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pictures import use_many_faces

from maniple.cli.splat.likeness import held_out
from maniple.cli.splat.subject import load_subject
from maniple.data.video import save_png, tile
from maniple.sim import gl_renderer
from maniple.sim.renderer import make_renderer, render_still
from maniple.splat.poses import PoseSource
from maniple.splat.quality import likeness
from maniple.splat.scene import read_scene
from maniple.splat.store import find_scene
from maniple.splat.views import draw_views

SIZE = 128
MUJOCOS_FACES = (28, 16, 4)
"""Slices and stacks of round geoms and quads of flat ones, where a model does not say."""


def compare(tasks: tuple[str, ...]) -> dict[str, Any]:
    """Shipped scenes in states that they have not seen, against fast and against MuJoCo's GL.

    GL computes light at the corners of faces: here with the faces that MuJoCo draws by default,
    with the few of our lean settings, and with very many.
    """
    lean_faces = gl_renderer._set_quality
    faces = {
        "mujoco": _use_default_faces,
        "mujoco, lean": lean_faces,
        "mujoco, many faces": use_many_faces,
    }
    answer: dict[str, Any] = {}
    try:
        for task in tasks:
            answer[task] = _compare_one(task, faces)
            print(task, json.dumps(answer[task]))
    finally:
        gl_renderer._set_quality = lean_faces
    return answer


def _compare_one(task: str, faces: dict[str, Any]) -> dict[str, Any]:
    source, views = held_out(task)
    path = find_scene(source.model)
    assert path is not None
    scene = read_scene(path)
    answer: dict[str, Any] = {"gaussians": len(scene)}
    for name in ("fast", *faces):
        other = views
        if name in faces:
            gl_renderer._set_quality = faces[name]
            other = draw_views(source, len(source), (SIZE, SIZE), "mujoco")
        table = likeness(scene, source, other)
        answer[name] = {c: [round(v, 1) for v in row] for c, row in table.items()}
    return answer


def _use_default_faces(model: Any, quality: str, width: int, height: int) -> None:
    """Let GL draw as many faces as MuJoCo does unless it is told otherwise; no shadows."""
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    shapes = model.vis.quality
    shapes.offsamples = shapes.shadowsize = 0  # views are drawn with four samples in a pixel
    shapes.numslices, shapes.numstacks, shapes.numquads = MUJOCOS_FACES


def sheet(tasks: tuple[str, ...], path: Path) -> str:
    """MuJoCo, splats and hybrid beside each other, one row for each camera of each task."""
    pictures = []
    for task in tasks:
        model, seen = load_subject(task, 3)
        source = PoseSource(model, seen[-1:])
        for camera in range(model.ncam):
            for name in ("mujoco", "splat", "hybrid"):
                renderer = make_renderer(name, source, (256, 256))
                pictures.append(render_still(renderer, 0, camera, 256, 256))
                renderer.close()
    save_png(path, tile(pictures, 6))
    return str(path)
