"""Cover the geoms of a model with discs: any MuJoCo scene as splats, without photographs."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.sim.fast.support import geom_colours, visible_geoms
from maniple.sim.renderer import RenderSource
from maniple.splat.cloud import C0, make_cloud
from maniple.splat.reference import camera_of
from maniple.splat.scene import Part, Scene, owner_of
from maniple.splat.surfaces import KINDS, Points, surface_points
from maniple.splat.views import Views, sky_of

GAUSSIANS = 20_000
FIRST_POINTS, MOST_POINTS = 1500, 60_000
"""Points of a geom with which it is found out where discs are needed, and where discs may be."""
COVER = 0.65
"""Standard deviation of a disc, in distances between discs."""
THIN = 0.05
"""Thickness of a disc, in its standard deviations."""
LEAST_DISCS = 40
"""Of a geom that is seen at all, where there are so many to give."""
FAVOUR = 0.6
"""Density of discs goes with this power of the density of pixels."""


class Geom(NamedTuple):
    """A geom's surface and how closely cameras look at it."""

    number: int
    points: Points
    pixels: NDArray[np.float64]
    """Pixels per square metre in the view that shows a point best; 0: it is never seen."""


def bake(
    model: mujoco.MjModel,
    source: RenderSource | None = None,
    views: Views | None = None,
    count: int = GAUSSIANS,
) -> Scene:
    """Return a scene of at most `count` lit discs.

    Args:
        model: Whose visible geoms are covered: primitives and meshes.
        source: The rows that the views show.
        views: Where given, discs are where cameras look, and nothing is where they never do.
        count: How many discs there may be.
    """
    shown = np.flatnonzero(visible_geoms(model))
    strange = [g for g in shown if int(model.geom_type[g]) not in KINDS]
    if strange:
        kind = mujoco.mjtGeom(int(model.geom_type[strange[0]])).name.removeprefix("mjGEOM_").lower()
        raise BadConfig(f"A geom of type {kind} cannot be covered with splats.")
    geoms = [_look_at(model, int(g), FIRST_POINTS, source, views) for g in shown]
    wanted = np.array([(g.points.area * g.pixels**FAVOUR).sum() for g in geoms])
    best = np.array([(g.pixels**FAVOUR).max() * g.points.area.sum() for g in geoms])
    # So many points that the densest place has enough of them.
    scale = count / max(wanted.sum(), 1e-12)
    most = np.clip(best * scale * 1.5, 4 * LEAST_DISCS, MOST_POINTS).astype(int)
    geoms = [
        _look_at(model, g.number, n, source, views)
        for g, n in zip(geoms, most.tolist(), strict=True)
        if (g.pixels > 0).any()
    ]
    if not geoms:
        raise BadConfig("The cameras of the model see no geom that splats could cover.")
    return _cover(model, geoms, count)


def _cover(model: mujoco.MjModel, geoms: list[Geom], count: int) -> Scene:
    density = [g.pixels**FAVOUR for g in geoms]
    scale = count / sum((g.points.area * d).sum() for g, d in zip(geoms, density, strict=True))
    means, normals, sigmas, labels = [], [], [], []
    for k, (g, dense) in enumerate(zip(geoms, density, strict=True)):
        chance = scale * dense * g.points.area
        # A finger is small, but a wrist camera has it in every picture.
        chance = np.minimum(chance * max(1.0, LEAST_DISCS / max(chance.sum(), 1e-9)), 1.0)
        mine = g.points.draw < chance
        turn, pos = _pose(model, g.number)
        means.append(g.points.at[mine] @ turn.T + pos)
        normals.append(g.points.normal[mine] @ turn.T)
        # What a disc stands for is what its point stood for, and those that were left out.
        sigmas.append(COVER * np.sqrt(g.points.area[mine] / chance[mine]))
        labels.append(np.full(mine.sum(), k))
    number = np.concatenate(labels)
    rgb = geom_colours(model)[[g.number for g in geoms], :3].astype(np.float64)[number]
    sigma = np.concatenate(sigmas)
    cloud = make_cloud(
        np.concatenate(means),
        _facing(np.concatenate(normals)),
        np.stack([sigma, sigma, THIN * sigma], 1),
        np.full(len(number), 0.95),
        ((rgb - 0.5) / C0)[:, None],
        number,
        "mip",
    )
    if len(cloud) > count:
        keep = np.sort(np.random.default_rng(0).choice(len(cloud), count, replace=False))
        cloud = cloud.take(keep)
    owners = tuple(owner_of(model, g.number) for g in geoms)
    return Scene((Part(cloud, owners, is_lit=True, is_two_sided=False),), sky_of(model))


def _look_at(
    model: mujoco.MjModel, geom: int, count: int, source: RenderSource | None, views: Views | None
) -> Geom:
    points = surface_points(model, geom, count)
    if source is None or views is None:
        return Geom(geom, points, np.full(count, 1.0))
    pixels = np.zeros(count)
    places = {name: source.field(name)[0] for name in ("xpos", "xmat", "cam_xpos", "cam_xmat")}
    turn, pos = _pose(model, geom)
    at, normal = points.at @ turn.T + pos, points.normal @ turn.T
    body = int(model.geom_bodyid[geom])
    height, width = views.depth.shape[1:]
    for k in range(len(views)):
        if not np.any(views.segmentation[k] == geom):
            continue
        row, number = int(views.rows[k]), int(views.cameras[k])
        camera = camera_of(
            places["cam_xpos"][row, number], places["cam_xmat"][row, number],
            float(model.cam_fovy[number]), (height, width),
        )  # fmt: skip
        body_turn = places["xmat"][row, body].reshape(3, 3)
        m = camera.turn @ body_turn
        p = at @ m.T + camera.turn @ (places["xpos"][row, body] - camera.pos)
        z = np.maximum(p[:, 2], 1e-6)
        x = camera.focal_px * p[:, 0] / z + 0.5 * width
        y = camera.focal_px * p[:, 1] / z + 0.5 * height
        inside = (p[:, 2] > 1e-3) & (x >= 0) & (x < width) & (y >= 0) & (y < height)
        column, line = (np.clip(c, 0, n - 1).astype(int) for c, n in ((x, width), (y, height)))
        facing = -((normal @ m.T) * p).sum(1) / np.linalg.norm(p, axis=1)
        near = np.abs(views.depth[k][line, column] - z) < 0.01 + 0.03 * z
        seen = inside & near & (facing > 0) & (views.segmentation[k][line, column] == geom)
        pixels = np.maximum(pixels, np.where(seen, camera.focal_px**2 * facing / z**2, 0.0))
    return Geom(geom, points, pixels)


def _pose(model: mujoco.MjModel, geom: int) -> tuple[NDArray, NDArray]:
    """Where a geom is in its body."""
    turn = np.empty(9)
    mujoco.mju_quat2Mat(turn, model.geom_quat[geom])
    return turn.reshape(3, 3), model.geom_pos[geom].copy()


def _facing(normals: NDArray) -> NDArray:
    """Return quaternions that turn the z axis to normals."""
    w = 1.0 + normals[:, 2]
    quats = np.stack([w, -normals[:, 1], normals[:, 0], 0 * w], 1)
    quats[w < 1e-6] = [0.0, 1.0, 0.0, 0.0]
    return quats / np.linalg.norm(quats, axis=1, keepdims=True)
