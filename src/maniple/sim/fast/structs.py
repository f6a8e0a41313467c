"""The structs of `scene.h` in Python: same fields, same order."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_void_p

from maniple.sim.kernel.structs import Field, FreeView

POINTERS = (
    *("type", "is_visible", "layer", "emission", "specular", "shininess", "sky"),
    *("light_is_point", "light_is_active", "light_casts_shadow", "attenuation", "headlight"),
)


class Scene(ctypes.Structure):
    """What the rows' model is made of."""

    _fields_ = [
        *((name, c_int32) for name in ("geoms", "lights", "sky_width", "has_headlight")),
        ("near", c_float),
        ("far", c_float),
        *((name, c_void_p) for name in POINTERS),
    ]


ROW_FIELDS = (
    *("geom_xpos", "geom_xmat", "geom_size", "geom_rgba"),
    *("cam_xpos", "cam_xmat", "cam_fovy"),
    *("light_xpos", "light_xdir", "light_ambient", "light_diffuse", "light_specular"),
)


class Rows(ctypes.Structure):
    """Where things are and how they look, of every row."""

    _fields_ = [(name, Field) for name in ROW_FIELDS]


class Output(ctypes.Structure):
    """Where the pictures of one camera go."""

    _fields_ = [
        ("camera", c_int32),
        ("is_still", c_int32),
        *((name, c_void_p) for name in ("rgb", "depth", "segmentation")),
        *((name, c_int64) for name in ("rgb_stride", "depth_stride", "segmentation_stride")),
    ]


class Order(ctypes.Structure):
    """What is to be drawn."""

    _fields_ = [
        *((name, c_int32) for name in ("rows", "cameras", "width", "height")),
        *((name, c_int32) for name in ("is_fine", "tolerance", "has_shadows", "threads", "lanes")),
        ("keeps_placed", c_int32),
        ("row", c_void_p),
        ("output", c_void_p),
        ("free_view", FreeView),
    ]
