"""maniple splat fit: splats refined until they look like the scene, or like photographs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro

from maniple.core.errors import BadConfig


@dataclass(frozen=True)
class Options:
    """What to refine, against what, and for how long."""

    subject: tyro.conf.Positional[str]
    """A task, a model file NAME.xml, or with --photos a cloud (.ply, .splat)."""

    photos: Path | None = None
    """A transforms.json with photographs: the cloud is fitted to them."""

    out: Path | None = None
    """Scene file, cloud or folder to write; None: where the renderer 'splat' finds it."""

    count: int = 20_000
    """Gaussians at most."""

    steps: int = 5000
    """Pictures that are looked at, one after the other."""

    seed: int = 0
    """Of states and of the order of pictures."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Fit, write, tell."""
    if options.count < 1 or options.steps < 1:
        raise BadConfig(
            f"count is {options.count} and steps is {options.steps}; both are 1 or more."
        )
    return _fit_photos(options) if options.photos else _fit_task(options)


def _fit_task(options: Options) -> dict[str, Any]:
    from maniple.cli.progress import bar
    from maniple.cli.splat.likeness import held_out, show
    from maniple.cli.splat.subject import load_subject
    from maniple.splat.bake import bake
    from maniple.splat.fit import FitConfig, fit
    from maniple.splat.making import FIRST_PART, training_views
    from maniple.splat.quality import likeness
    from maniple.splat.scene import SUFFIXES, check_target, write_scene
    from maniple.splat.store import cache_folder, scene_name

    model, seen = load_subject(options.subject, options.seed)
    out = options.out or cache_folder()
    path = out if out.suffix in SUFFIXES else out / scene_name(model)
    check_target(path)
    began = time.process_time()
    source, views = training_views(model, seen)
    baked = bake(model, source, views, max(1, int(FIRST_PART * options.count)))
    config = FitConfig(options.steps, options.count, seed=options.seed)
    with bar(f"Fitting {options.subject}", options.steps, not options.json) as tell:
        scene = fit(baked, source, views, config, tell)
    took = time.process_time() - began
    write_scene(scene, path)
    test = held_out(options.subject)
    found = {"before": likeness(baked, *test), "after": likeness(scene, *test)}
    if not options.json:
        print(f"{len(scene)} Gaussians in {path}, {took:.0f} s of processor time")
        show(found)
    quality = {k: {c: v._asdict() for c, v in table.items()} for k, table in found.items()}
    return {"scene": str(path), "gaussians": len(scene), "cpu_s": took, "likeness": quality}


def _fit_photos(options: Options) -> dict[str, Any]:
    import numpy as np

    from maniple.cli.progress import bar
    from maniple.splat.files import read_cloud, write_cloud
    from maniple.splat.fit import FitConfig, fit
    from maniple.splat.photos import read_photos
    from maniple.splat.quality import likeness
    from maniple.splat.scene import Part, Scene

    assert options.photos is not None
    path = options.out or Path(options.subject).with_suffix(".fitted.ply")
    if path.is_dir() or not path.parent.is_dir():
        raise BadConfig(f"{path} cannot be written: it is a folder, or in none.")
    cloud = read_cloud(options.subject)
    source, views = read_photos(options.photos)
    scene = Scene((Part(replace(cloud, labels=None)),), np.zeros((1, 3), np.float32))
    config = FitConfig(options.steps, max(options.count, len(cloud)), 0.0, options.seed)
    with bar("Fitting photographs", options.steps, not options.json) as tell:
        fitted = fit(scene, source, views, config, tell)
    try:
        write_cloud(fitted.parts[0].cloud, path)
    except OSError as error:
        raise BadConfig(f"{path} cannot be written: {error.strerror}.") from None
    before, after = (likeness(s, source, views)["photo"].psnr_db for s in (scene, fitted))
    if not options.json:
        print(f"{len(fitted)} Gaussians in {path}: {before:.1f} dB before, {after:.1f} dB after")
    return {"cloud": str(path), "gaussians": len(fitted), "before_db": before, "after_db": after}
