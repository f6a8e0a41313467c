"""Make the splats of a model: bake it, and refine them against pictures of it."""

from __future__ import annotations

from collections.abc import Callable

import mujoco

from maniple.sim.renderer import RenderSource
from maniple.splat.bake import GAUSSIANS, bake
from maniple.splat.fit import FitConfig, fit
from maniple.splat.poses import Moment, PoseSource, draw_moments
from maniple.splat.scene import Scene
from maniple.splat.views import Views, draw_views

TRAINING_POSES, TRAINING_SIZE = 72, (128, 128)
FIRST_PART = 0.25
"""So many of the Gaussians are there from the beginning; the others come where they are needed."""
MOST_SEEN = 64
STEPS = FitConfig.steps


def make_scene(
    model: mujoco.MjModel,
    seen: list[Moment],
    count: int = GAUSSIANS,
    config: FitConfig | None = None,
    tell: Callable[[int], None] | None = None,
) -> Scene:
    """Bake a model and refine it, from states around those that were seen."""
    config = config or FitConfig(count=count)
    source, views = training_views(model, seen)
    baked = bake(model, source, views, int(FIRST_PART * count))
    return fit(baked, source, views, config, tell)


def training_views(model: mujoco.MjModel, seen: list[Moment]) -> tuple[PoseSource, Views]:
    """Draw a model in states around those that were seen, through its cameras."""
    source = PoseSource(model, draw_moments(model, seen, TRAINING_POSES), jitter_seed=1)
    return source, draw_views(source, len(source), TRAINING_SIZE)


def seen_in(source: RenderSource) -> list[Moment]:
    """Return the states of a source's rows."""
    xpos, has_rows = source.field("xpos")
    rows = min(len(xpos), MOST_SEEN) if has_rows else 1
    return [Moment.of(source.load(row)[1]) for row in range(rows)]
