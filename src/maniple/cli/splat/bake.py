"""maniple splat bake: a task's scene as splats, without fitting."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro


@dataclass(frozen=True)
class Options:
    """What to cover, with how many splats."""

    subject: tyro.conf.Positional[str]
    """A task, or a model file NAME.xml."""

    out: Path = Path("scene.yaml")
    """Scene file to write; its cloud goes beside it."""

    count: int = 20_000
    """Gaussians at most."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Bake, write, tell."""
    from maniple.cli.splat.likeness import held_out, show
    from maniple.cli.splat.subject import load_subject
    from maniple.splat.bake import bake
    from maniple.splat.making import training_views
    from maniple.splat.quality import likeness
    from maniple.splat.scene import check_target, write_scene

    check_target(options.out)
    model, seen = load_subject(options.subject)
    source, views = training_views(model, seen)
    scene = bake(model, source, views, options.count)
    write_scene(scene, options.out)
    found = likeness(scene, *held_out(options.subject))
    if not options.json:
        print(f"{len(scene)} Gaussians in {options.out}")
        show({"baked": found})
    quality = {name: row._asdict() for name, row in found.items()}
    return {"scene": str(options.out), "gaussians": len(scene), "likeness": quality}
