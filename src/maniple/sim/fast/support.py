"""Tell whether the renderer of primitives can draw a model, and if not, why."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

MAX_GEOMS = 254
"""A geom's number is kept in one byte of every pixel."""
MAX_LIGHTS = 8
"""The headlight included."""
OPAQUE = 0.995
PRIMITIVES = tuple(
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
_SHOWN_GROUPS = 3
"""MuJoCo shows geoms and sites of the groups 0, 1 and 2."""
_PLAIN = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
"""A geom of this colour, MuJoCo's default, takes that of its material."""


def geom_colours(model: mujoco.MjModel, rgba: NDArray | None = None) -> NDArray[np.float32]:
    """Return the colours in which MuJoCo draws geoms, (..., geoms, 4), as its `rgba` says."""
    colours = np.array(model.geom_rgba if rgba is None else rgba, np.float32)
    if np.any(model.geom_matid >= 0):
        borrows = (model.geom_matid >= 0) & np.all(colours == _PLAIN, axis=-1)
        colours = np.where(borrows[..., None], model.mat_rgba[model.geom_matid], colours)
    return colours


def visible_geoms(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return which geoms are shown at all."""
    return (model.geom_group < _SHOWN_GROUPS) & (geom_colours(model)[:, 3] > 0)


def still_bodies(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return which bodies never move: welded to the world, and not put anywhere by hand."""
    roots = model.body_rootid
    return (model.body_weldid == 0) & (model.body_mocapid[roots] < 0)


def placed_bodies(model: mujoco.MjModel) -> NDArray[np.bool_]:
    """Return which bodies stand where they were put: mocap bodies, and what is welded to them."""
    return model.body_mocapid[model.body_weldid] >= 0


def why_not(model: mujoco.MjModel) -> str | None:
    """Return what of a model the renderer of primitives cannot draw, or None."""
    shown = visible_geoms(model)
    kinds = model.geom_type[shown]
    strange = kinds[~np.isin(kinds, PRIMITIVES)]
    if len(strange):
        name = mujoco.mjtGeom(int(strange[0])).name.removeprefix("mjGEOM_").lower()
        return f"the scene has a geom of type {name}"
    if model.ngeom > MAX_GEOMS:
        return f"the scene has {model.ngeom} geoms, more than {MAX_GEOMS}"
    if np.any(geom_colours(model)[shown, 3] < OPAQUE):
        return "a geom is transparent"
    materials = np.unique(model.geom_matid[shown])
    return (
        _why_not_materials(model, materials[materials >= 0])
        or _why_not_planes(model, shown)
        or _why_not_lights(model)
        or _why_not_cameras(model)
        or _why_not_other(model)
    )


def _why_not_materials(model: mujoco.MjModel, materials: NDArray) -> str | None:
    if np.any(model.mat_texid[materials] >= 0):
        return "a material has a texture"
    if np.any(model.mat_reflectance[materials] > 0):
        return "a material reflects"
    return None


def _why_not_planes(model: mujoco.MjModel, shown: NDArray[np.bool_]) -> str | None:
    planes = shown & (model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE))
    if np.any(model.geom_size[planes, :2] <= 0):
        return "a plane is endless, and MuJoCo veils it with haze"
    return None


def _why_not_lights(model: mujoco.MjModel) -> str | None:
    active = model.light_active.astype(bool)
    known = (int(mujoco.mjtLightType.mjLIGHT_DIRECTIONAL), int(mujoco.mjtLightType.mjLIGHT_POINT))
    if not np.all(np.isin(model.light_type[active], known)):
        return "a light is a spot light"
    count = int(active.sum()) + bool(model.vis.headlight.active)
    if not 0 < count <= MAX_LIGHTS:
        return f"the scene has {count} lights instead of 1 to {MAX_LIGHTS}"
    return None


def _why_not_cameras(model: mujoco.MjModel) -> str | None:
    if np.any(model.cam_projection != int(mujoco.mjtProjection.mjPROJ_PERSPECTIVE)):
        return "a camera is orthographic"
    if np.any(model.cam_sensorsize != 0):
        return "a camera has a sensor size"
    return None


def _why_not_other(model: mujoco.MjModel) -> str | None:
    if model.nskin:
        return "the scene has a skin"
    if model.nflex:
        return "the scene has a flexible body"
    if np.any((model.site_group < _SHOWN_GROUPS) & (model.site_rgba[:, 3] > 0)):
        return "a site is visible"
    if np.any((model.tendon_group < _SHOWN_GROUPS) & (model.tendon_rgba[:, 3] > 0)):
        return "a tendon is visible"
    return None
