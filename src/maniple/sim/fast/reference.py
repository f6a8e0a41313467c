"""Draw primitives in numpy, in double precision and one ray after the other: the oracle.

It is also what draws where there was no compiler. It shares formulas with nobody: geometry is
solved for the distance along the ray, and light is computed from normals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.scene import SceneArrays
from maniple.sim.kernel.structs import FreeView

PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX = (
    int(kind)
    for kind in (
        mujoco.mjtGeom.mjGEOM_PLANE,
        mujoco.mjtGeom.mjGEOM_SPHERE,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
        mujoco.mjtGeom.mjGEOM_ELLIPSOID,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_BOX,
    )
)
SKIN_M = 1e-6
"""Shadow rays begin so far from the surface."""

Fields = Mapping[str, NDArray]
"""The row's arrays, by MuJoCo's names."""


class Hits(NamedTuple):
    """What rays meet first."""

    geom: NDArray[np.int32]
    t: NDArray[np.float64]
    normal_w: NDArray[np.float64]


def draw_reference(
    scene: SceneArrays,
    row: Fields,
    free_view: FreeView,
    camera: int,
    into: Mapping[str, NDArray],
    is_fine: bool = False,
) -> None:
    """Fill the pictures of one row and one camera."""
    height, width = next(iter(into.values())).shape[:2]
    pos, turn, fovy = _viewpoint(row, free_view, camera)
    rays = _pixel_rays(width, height, fovy) @ turn.T
    hits = _cast(scene, row, pos, rays)
    if "depth" in into:
        into["depth"][...] = np.minimum(hits.t, scene.far).reshape(height, width)
    if "segmentation" in into:
        into["segmentation"][...] = hits.geom.reshape(height, width)
    if "rgb" not in into:
        return
    finer = 2 if is_fine else 1
    if is_fine:
        rays = _pixel_rays(2 * width, 2 * height, fovy) @ turn.T
        hits = _cast(scene, row, pos, rays)
    colours = _shade(scene, row, pos, turn, rays, hits, is_fine)
    colours = np.rint(np.minimum(colours, 1.0) * 255).reshape(height, finer, width, finer, 3)
    into["rgb"][...] = np.floor(colours.mean((1, 3)) + 0.5).astype(np.uint8)


def _viewpoint(row: Fields, free_view: FreeView, camera: int) -> tuple[NDArray, NDArray, float]:
    if camera < 0:
        turn = np.array(free_view.mat).reshape(3, 3)
        return np.array(free_view.pos), turn, float(free_view.fovy)
    turn = row["cam_xmat"][camera].reshape(3, 3)
    return row["cam_xpos"][camera], turn, float(row["cam_fovy"][camera])


def _pixel_rays(width: int, height: int, fovy_deg: float) -> NDArray:
    """Directions (x, y, -1) in the camera's frame, so that a distance along them is a depth."""
    top = np.tan(np.radians(fovy_deg) / 2)
    y = top * (1 - (np.arange(height) + 0.5) * 2 / height)
    x = top * width / height * ((np.arange(width) + 0.5) * 2 / width - 1)
    return np.stack([*np.meshgrid(x, y), np.full((height, width), -1.0)], -1).reshape(-1, 3)


def _cast(scene: SceneArrays, row: Fields, pos: NDArray, rays: NDArray) -> Hits:
    hits = Hits(np.full(len(rays), -1, np.int32), np.full(len(rays), np.inf), np.zeros_like(rays))
    for geom in np.flatnonzero(scene.is_visible):
        turn = row["geom_xmat"][geom].reshape(3, 3)
        start = np.broadcast_to((pos - row["geom_xpos"][geom]) @ turn, rays.shape)
        if not (np.all(np.isfinite(turn)) and np.all(np.isfinite(start))):
            continue
        t, normal = _meet(int(scene.type[geom]), row["geom_size"][geom], start, rays @ turn)
        closer = (t < hits.t) & (t >= scene.near) & (t < scene.far)
        hits.geom[closer], hits.t[closer] = geom, t[closer]
        hits.normal_w[closer] = normal[closer] @ turn.T
    return hits


def _meet(kind: int, size: NDArray, o: NDArray, d: NDArray) -> tuple[NDArray, NDArray]:
    """Return where rays enter a geom from outside, and the normal there, in the geom's frame."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if kind == PLANE:
            return _meet_plane(size, o, d)
        if kind == BOX:
            return _meet_box(size, o, d)
        if kind in (SPHERE, ELLIPSOID):
            half = np.full(3, size[0]) if kind == SPHERE else size
            t = _meet_ball(o / half, d / half)
            normal = (o + t[:, None] * d) / half**2
            return t, normal / np.linalg.norm(normal, axis=1, keepdims=True)
        return _meet_round(kind, size, o, d)


def _meet_plane(size: NDArray, o: NDArray, d: NDArray) -> tuple[NDArray, NDArray]:
    t = np.where((o[:, 2] > 0) & (d[:, 2] < 0), -o[:, 2] / d[:, 2], np.inf)
    for k in range(2):
        if size[k] > 0:
            t = np.where(np.abs(o[:, k] + t * d[:, k]) <= size[k], t, np.inf)
    return t, np.broadcast_to([0.0, 0.0, 1.0], o.shape)


def _meet_box(size: NDArray, o: NDArray, d: NDArray) -> tuple[NDArray, NDArray]:
    one, other = (-size - o) / d, (size - o) / d
    enter, leave = np.fmin(one, other), np.fmax(one, other)
    axis = np.argmax(enter, 1)
    first = enter[np.arange(len(o)), axis]
    t = np.where((first <= leave.min(1)) & (first > 0), first, np.inf)
    normal = np.zeros_like(o)
    normal[np.arange(len(o)), axis] = -np.sign(d[np.arange(len(o)), axis])
    return t, normal


def _meet_ball(o: NDArray, d: NDArray) -> NDArray:
    """Distances to the unit ball; from inside there is none."""
    a, b, c = (d * d).sum(1), (o * d).sum(1), (o * o).sum(1) - 1
    q = b * b - a * c
    t = np.where(q >= 0, (-b - np.sqrt(np.maximum(q, 0))) / a, np.inf)
    return np.where((c > 0) & (t > 0), t, np.inf)


def _meet_round(kind: int, size: NDArray, o: NDArray, d: NDArray) -> tuple[NDArray, NDArray]:
    """Capsules and cylinders along z."""
    radius, half = size[0], size[1]
    side = _meet_ball(o * [1, 1, 0] / radius, d * [1, 1, 0] / radius)
    side = np.where(np.abs(o[:, 2] + side * d[:, 2]) <= half, side, np.inf)
    at = o + side[:, None] * d
    t, normal = side, at * [1, 1, 0] / radius
    inside = _is_inside(kind, radius, half, o)
    for end in (-half, half):
        if kind == CAPSULE:
            middle = np.array([0, 0, end])
            cap = _meet_ball((o - middle) / radius, d / radius)
            at = o + cap[:, None] * d
            cap = np.where(at[:, 2] * np.sign(end) >= half, cap, np.inf)
            outward = (at - middle) / radius
        else:
            cap = (end - o[:, 2]) / d[:, 2]
            at = o + cap[:, None] * d
            enters = (o[:, 2] - end) * np.sign(end) > 0
            cap = np.where(enters & (cap > 0) & (np.hypot(*at.T[:2]) <= radius), cap, np.inf)
            outward = np.broadcast_to([0.0, 0.0, np.sign(end)], o.shape)
        closer = cap < t
        t = np.where(closer, cap, t)
        normal = np.where(closer[:, None], outward, normal)
    return np.where(inside, np.inf, t), normal


def _is_inside(kind: int, radius: float, half: float, o: NDArray) -> NDArray[np.bool_]:
    reach = np.maximum(np.abs(o[:, 2]) - half, 0.0)
    if kind == CAPSULE:
        return (o[:, :2] ** 2).sum(1) + reach**2 <= radius**2
    return ((o[:, :2] ** 2).sum(1) <= radius**2) & (reach == 0)


def _shade(
    scene: SceneArrays,
    row: Fields,
    pos: NDArray,
    turn: NDArray,
    rays: NDArray,
    hits: Hits,
    has_shadows: bool,
) -> NDArray[np.float64]:
    picture = sky(scene, rays)
    seen = hits.geom >= 0
    geoms, normal = hits.geom[seen], hits.normal_w[seen]
    at = pos + hits.t[seen, None] * rays[seen]
    viewer = -rays[seen] / np.linalg.norm(rays[seen], axis=1, keepdims=True)
    colour = row["geom_rgba"][geoms, :3].astype(np.float64)
    total = colour * scene.emission[geoms, None]
    for light in _lights(scene, row, turn):
        towards, strength = light.towards(at)
        tilt = (normal * towards).sum(1)
        lit = tilt > 0
        if has_shadows and light.casts_shadow:
            lit &= ~_is_blocked(scene, row, at + SKIN_M * normal, towards, geoms)
        half = towards + viewer
        half /= np.maximum(np.linalg.norm(half, axis=1, keepdims=True), 1e-9)
        glint = np.clip((normal * half).sum(1), 0, 1) ** (128.0 * scene.shininess[geoms])
        glint = glint * scene.specular[geoms]
        part = colour * (light.ambient + light.diffuse * np.where(lit, tilt, 0.0)[:, None])
        total += strength * (part + light.specular * np.where(lit, glint, 0.0)[:, None])
    picture[seen] = total
    return picture


class _Light(NamedTuple):
    ambient: NDArray
    diffuse: NDArray
    specular: NDArray
    place_w: NDArray
    """Of a point light; the direction towards any other."""
    attenuation: NDArray | None
    casts_shadow: bool

    def towards(self, at: NDArray) -> tuple[NDArray, NDArray]:
        """Return directions towards the light and how strong it is there."""
        if self.attenuation is None:
            return np.broadcast_to(self.place_w, at.shape), np.ones((len(at), 1))
        away = self.place_w - at
        far = np.linalg.norm(away, axis=1, keepdims=True)
        constant, linear, square = self.attenuation
        return away / far, 1 / (constant + linear * far + square * far**2)


def _lights(scene: SceneArrays, row: Fields, turn: NDArray) -> list[_Light]:
    lights = []
    if scene.has_headlight:
        parts = scene.headlight.reshape(3, 3).astype(np.float64)
        lights.append(_Light(parts[0], parts[1], parts[2], turn[:, 2], None, False))
    for k in np.flatnonzero(scene.light_is_active):
        parts = [row[f"light_{part}"][k] for part in ("ambient", "diffuse", "specular")]
        is_point = bool(scene.light_is_point[k])
        place = row["light_xpos"][k] if is_point else -row["light_xdir"][k]
        attenuation = scene.attenuation[k] if is_point else None
        casts = bool(scene.light_casts_shadow[k]) and not is_point
        lights.append(_Light(parts[0], parts[1], parts[2], place, attenuation, casts))
    return lights


def _is_blocked(
    scene: SceneArrays, row: Fields, at: NDArray, towards: NDArray, own: NDArray
) -> NDArray[np.bool_]:
    blocked = np.zeros(len(at), np.bool_)
    for geom in np.flatnonzero(scene.is_visible):
        turn = row["geom_xmat"][geom].reshape(3, 3)
        start = (at - row["geom_xpos"][geom]) @ turn
        t, _ = _meet(int(scene.type[geom]), row["geom_size"][geom], start, towards @ turn)
        blocked |= np.isfinite(t) & (own != geom)
    return blocked


def sky(scene: SceneArrays, rays: NDArray) -> NDArray[np.float64]:
    """Look rays up in the sky box, between its pixels."""
    if scene.sky is None:
        return np.zeros_like(rays)
    width = scene.sky_width
    s, t, q = rays[:, 0], rays[:, 2], -rays[:, 1]
    sizes = np.abs(np.stack([s, t, q]))
    on_s = (sizes[0] >= sizes[1]) & (sizes[0] >= sizes[2])
    on_t = ~on_s & (sizes[1] >= sizes[2])
    main = np.where(on_s, s, np.where(on_t, t, q))
    sign = np.where(main < 0, -1.0, 1.0)
    across = np.where(on_s, -q * sign, np.where(on_t, s, s * sign))
    down = np.where(on_t, q * sign, -t)
    face = np.where(on_s, 0, np.where(on_t, 2, 4)) + (main < 0)
    u, v = (
        np.clip((x / np.abs(main) + 1) * 0.5 * width - 0.5, 0, width - 1.001)
        for x in (across, down)
    )
    iu, iv = u.astype(int), v.astype(int)
    corner = (face * width + iv) * width + iu
    channels = (scene.sky[:, None] >> np.array([0, 8, 16])) & 255
    fu, fv = (u - iu)[:, None], (v - iv)[:, None]
    above = channels[corner] * (1 - fu) + channels[corner + 1] * fu
    below = channels[corner + width] * (1 - fu) + channels[corner + width + 1] * fu
    return (above * (1 - fv) + below * fv) / 255
