"""maniple splat align: a captured room at its place in a simulated scene."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tyro


@dataclass(frozen=True)
class Options:
    """Which capture goes where."""

    cloud: tyro.conf.Positional[Path]
    """The capture: .ply, .splat, and with the extra gsply .spz and .sog."""

    subject: tyro.conf.Positional[str]
    """The task, or the model file NAME.xml, that it belongs to."""

    points: Path
    """YAML with at least three points, {capture: [x, y, z], world: [x, y, z]}, or two cameras."""

    out: Path = Path("scene.yaml")
    """Scene file to write; the cloud is copied beside it."""

    colours: bool = True
    """Match the colours to those of the simulated scene."""

    json: bool = False
    """Print one JSON object as the last line."""


def run(options: Options) -> dict[str, Any]:
    """Align, match colours, write, tell."""
    import numpy as np

    from maniple.cli.splat.subject import load_subject
    from maniple.splat.align import align, match_colours, placed, read_references
    from maniple.splat.files import read_cloud
    from maniple.splat.making import TRAINING_SIZE
    from maniple.splat.poses import PoseSource
    from maniple.splat.scene import Part, Scene, check_target, write_scene
    from maniple.splat.views import draw_views, sky_of

    check_target(options.out, options.cloud)
    model, seen = load_subject(options.subject)
    found = align(read_references(options.points, model))
    cloud = replace(read_cloud(options.cloud), labels=None)
    scene = placed(Scene((Part(cloud),), sky_of(model)), found)
    if options.colours:
        source = PoseSource(model, seen[:1])
        scene = match_colours(scene, source, draw_views(source, 1, TRAINING_SIZE))
    write_scene(scene, options.out)
    gain = [round(g, 4) for g in scene.parts[0].gain]
    turn_deg = float(np.degrees(np.arccos(np.clip((np.trace(found.turn) - 1) / 2, -1, 1))))
    if not options.json:
        print(f"scale    {found.scale:.4f}, turned by {turn_deg:.1f} degrees")
        print(f"left     {1e3 * found.error_m:.1f} mm between reference points")
        print(f"colours  times {gain}")
        print(f"scene    {options.out}: use it with scene={str(options.out)!r}")
    return {
        "scene": str(options.out),
        "scale": found.scale,
        "turn_deg": turn_deg,
        "shift_m": found.shift.tolist(),
        "error_m": found.error_m,
        "gain": gain,
    }
