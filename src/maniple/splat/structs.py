"""The structs of `order.h` in Python: same fields, same order."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_void_p

import numpy as np

from maniple.sim.kernel.structs import Field, FreeView

IS_LIT, IS_ANTIALIASED, IS_TWO_SIDED = 1, 2, 4
CHUNK = 128
(MEAN, FACTOR, LOG2_OPACITY, LARGEST, NORMAL, SPECULAR, EXPONENT, EMISSION, COLOUR) = (
    0, 3, 12, 13, 14, 17, 18, 19, 20,
)  # fmt: skip
"""First plane of each property."""
GRADIENTS = 16


class Group(ctypes.Structure):
    """Gaussians that follow one body and are drawn in one way."""

    _fields_ = [
        *((name, c_int32) for name in ("body", "flags", "coefficients", "is_still")),
        ("eps2d", c_float),
    ]


class Chunk(ctypes.Structure):
    """Some Gaussians of one group, and a ball around them."""

    _fields_ = [
        *((name, c_int32) for name in ("first", "count", "group")),
        ("centre", c_float * 3),
        ("radius", c_float),
    ]


POINTERS = (
    *("planes", "label", "group", "chunk", "sky_table"),
    *("light_is_point", "light_is_active", "attenuation", "headlight"),
)


class CloudStruct(ctypes.Structure):
    """What the rows' scene is made of."""

    _fields_ = [
        *((name, c_int32) for name in ("count", "groups", "chunks", "lights", "labels", "sky")),
        ("has_headlight", c_int32),
        ("near", c_float),
        ("far", c_float),
        *((name, c_void_p) for name in POINTERS),
    ]


ROW_FIELDS = (
    *("xpos", "xmat", "cam_xpos", "cam_xmat", "cam_fovy"),
    *("light_xpos", "light_xdir", "light_ambient", "light_diffuse", "light_specular"),
)


class Rows(ctypes.Structure):
    """Where things are and how they look, of every row."""

    _fields_ = [(name, Field) for name in (*ROW_FIELDS, "tint")]


KINDS = ("rgb", "depth", "segmentation", "colour")
SOLID = ("solid_rgb", "solid_depth", "solid_segmentation")


class Output(ctypes.Structure):
    """Where the pictures of one camera go."""

    _fields_ = [
        ("camera", c_int32),
        ("is_still", c_int32),
        *((name, c_void_p) for name in (*KINDS, *SOLID)),
        *((f"{name}_stride", c_int64) for name in (*KINDS, *SOLID)),
    ]


class Order(ctypes.Structure):
    """What is to be drawn."""

    _fields_ = [
        *((name, c_int32) for name in ("rows", "cameras", "width", "height", "threads", "lanes")),
        ("row", c_void_p),
        ("is_plain", c_void_p),
        ("output", c_void_p),
        ("free_view", FreeView),
        ("nanoseconds", c_void_p),
    ]


class Training(ctypes.Structure):
    """What a gradient is taken of, and where it goes."""

    _fields_ = [
        ("target", c_void_p),
        ("target_depth", c_void_p),
        ("depth_weight", c_float),
        *((name, c_void_p) for name in ("gradient", "seen", "loss")),
    ]


DISC = np.dtype(
    [
        ("mean", "f4", 3), ("turn", "f4", (3, 3)), ("size", "f4", 3), ("opacity", "f4"),
        ("colour", "f4", 3), ("height", "f4"), ("unit", "f4"), ("pull", "f4"), ("is_flat", "i4"),
        ("at", "i4"), ("steps", "i4"), ("slow", "f4", 13), ("fast", "f4", 13),
    ]
)  # fmt: skip
"""What is refined of a Gaussian."""


class Descent(ctypes.Structure):
    """How Gaussians follow their gradients."""

    _fields_ = [
        ("count", c_int32),
        *((name, c_void_p) for name in ("discs", "gradient", "planes")),
        ("stride", c_int64),
        ("rate", c_float * 5),
        *((name, c_float) for name in ("sink", "rise", "narrowest")),
    ]
