"""Describe a model to the kernel: what does not change from row to row."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.fast.structs import POINTERS, Scene
from maniple.sim.fast.support import placed_bodies, still_bodies, visible_geoms
from maniple.sim.kernel.structs import FreeView, address

STILL, PLACED, MOVING = 1, 2, 4
"""Layers of geoms, as the kernel numbers them."""
DEFAULT_SHINE = 0.5
"""Specular and shininess of a geom without a material, as MuJoCo has them."""


class SceneArrays:
    """The arrays of a Scene, kept alive with it."""

    def __init__(self, model: mujoco.MjModel) -> None:
        material = model.geom_matid
        self.type = model.geom_type.astype(np.int32)
        self.is_visible = visible_geoms(model).astype(np.uint8)
        layer = np.where(placed_bodies(model), PLACED, MOVING)
        self.layer = np.where(still_bodies(model), STILL, layer)[model.geom_bodyid].astype(np.uint8)
        self.emission = _by_material(model.mat_emission, material, 0.0)
        self.specular = _by_material(model.mat_specular, material, DEFAULT_SHINE)
        self.shininess = _by_material(model.mat_shininess, material, DEFAULT_SHINE)
        self.sky, self.sky_width = _sky(model)
        point = int(mujoco.mjtLightType.mjLIGHT_POINT)
        self.light_is_point = (model.light_type == point).astype(np.int32)
        self.light_is_active = model.light_active.astype(np.uint8)
        self.light_casts_shadow = model.light_castshadow.astype(np.uint8)
        self.attenuation = np.ascontiguousarray(model.light_attenuation, np.float32)
        head = model.vis.headlight
        self.headlight = np.concatenate([head.ambient, head.diffuse, head.specular]).astype(
            np.float32
        )
        self.has_headlight = bool(head.active)
        self.near = float(model.vis.map.znear * model.stat.extent)
        self.far = float(model.vis.map.zfar * model.stat.extent)
        self.cameras_still = still_bodies(model)[model.cam_bodyid] & (
            model.cam_mode == int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED)
        )

    @property
    def has_shadows(self) -> bool:
        """Whether a light throws shadows where they are drawn."""
        casts = self.light_casts_shadow & self.light_is_active & (self.light_is_point == 0)
        return bool(casts.any())

    def struct(self) -> Scene:
        """Return the Scene; it points into these arrays."""
        scene = Scene(
            sky_width=self.sky_width,
            has_headlight=int(self.has_headlight),
            near=self.near,
            far=self.far,
        )
        for name in POINTERS:
            setattr(scene, name, address(getattr(self, name)))
        scene.geoms, scene.lights = len(self.type), len(self.light_is_point)
        return scene


def free_view(model: mujoco.MjModel) -> FreeView:
    """Return the view of MuJoCo's free camera: all of the scene, from the side."""
    shown = model.vis.global_
    turn, lift = np.radians(shown.azimuth), np.radians(shown.elevation)
    ahead = np.array([np.cos(lift) * np.cos(turn), np.cos(lift) * np.sin(turn), np.sin(lift)])
    right = np.array([np.sin(turn), -np.cos(turn), 0.0])
    up = np.cross(right, ahead)
    pos = model.stat.center - 1.5 * model.stat.extent * ahead
    view = FreeView()
    view.pos[:] = pos.tolist()
    view.mat[:] = np.stack([right, up, -ahead], 1).ravel().tolist()
    view.fovy = float(shown.fovy)
    return view


def _by_material(values: NDArray, material: NDArray, default: float) -> NDArray[np.float32]:
    found = np.full(len(material), default, np.float32)
    has = material >= 0
    found[has] = values[material[has]]
    return found


def _sky(model: mujoco.MjModel) -> tuple[NDArray[np.int32] | None, int]:
    """Return the faces of the sky box as 0xBBGGRR, and the width of one."""
    boxes = np.flatnonzero(model.tex_type == int(mujoco.mjtTexture.mjTEXTURE_SKYBOX))
    if not len(boxes):
        return None, 0
    at = int(boxes[0])
    width, height = int(model.tex_width[at]), int(model.tex_height[at])
    channels = int(model.tex_nchannel[at])
    start = int(model.tex_adr[at])
    data = model.tex_data[start : start + width * height * channels]
    pixels = data.reshape(-1, channels)[:, :3].astype(np.int32)
    if height == width:
        # One face for all six sides.
        pixels = np.tile(pixels, (6, 1))
    packed = pixels[:, 0] | pixels[:, 1] << 8 | pixels[:, 2] << 16
    # The kernel reads the neighbours of the last pixel too.
    return np.concatenate([packed, np.zeros(width + 2, np.int32)]).astype(np.int32), width
