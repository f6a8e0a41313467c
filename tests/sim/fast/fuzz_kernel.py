"""Draw random rubbish with a compiled kernel, straight through its structs.

python fuzz_kernel.py LIBRARY COUNT SEED
"""

import ctypes
import sys

import numpy as np

from maniple.sim.fast.structs import POINTERS, ROW_FIELDS, Order, Output, Rows, Scene
from maniple.sim.kernel.structs import Field, address

TYPES = (0, 2, 3, 4, 5, 6)
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1e38, -1e38, 1e300, -1.0])
SHAPES = {
    "geom_xpos": ("geoms", 3), "geom_xmat": ("geoms", 9), "geom_size": ("geoms", 3),
    "geom_rgba": ("geoms", 4), "cam_xpos": ("cameras", 3), "cam_xmat": ("cameras", 9),
    "cam_fovy": ("cameras", 1), "light_xpos": ("lights", 3), "light_xdir": ("lights", 3),
    "light_ambient": ("lights", 3), "light_diffuse": ("lights", 3),
    "light_specular": ("lights", 3),
}  # fmt: skip
FLOATS = ("geom_rgba", "light_ambient", "light_diffuse", "light_specular")


def rotation(rng):
    """A random rotation, as nine numbers."""
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return q.ravel()


def fuzz(library, count, seed):
    """Draw `count` scenes; every picture must be finite and name only geoms that exist."""
    rng = np.random.default_rng(seed)
    widest = library.kernel_widest()
    library.layers_new.restype = ctypes.c_void_p
    layers = library.layers_new(ctypes.c_int64(100_000))
    for _ in range(count):
        one(library, rng, layers, [4, widest][rng.integers(2)])
    library.layers_free(ctypes.c_void_p(layers))


def one(library, rng, layers, lanes):
    """Draw one scene."""
    number = {"geoms": int(rng.integers(0, 12)), "cameras": 2, "lights": int(rng.integers(0, 4))}
    rows, geoms, lights = int(rng.integers(1, 3)), number["geoms"], number["lights"]
    arrays = {}
    for name in ROW_FIELDS:
        of, width = SHAPES[name]
        values = rng.normal(size=(rows, number[of], width)) * rng.choice([0.3, 1.0, 10.0])
        if name.endswith("mat"):
            values = np.array([[rotation(rng) for _ in range(number[of])] for _ in range(rows)])
            values = values.reshape(rows, number[of], 9)
        if name == "geom_size":
            values = np.abs(values) * 0.3
        if name == "cam_fovy":
            values = rng.uniform(1, 170, values.shape)
        if values.size and rng.random() < 0.25:
            at = rng.integers(values.size, size=int(rng.integers(1, 4)))
            values.reshape(-1)[at] = rng.choice(ODD, len(at))
        with np.errstate(over="ignore"):
            arrays[name] = values.astype(np.float32 if name in FLOATS else np.float64)
    width = int(rng.integers(2, 9))
    fixed = {
        "type": rng.choice(TYPES, geoms).astype(np.int32),
        "is_visible": rng.integers(0, 2, geoms).astype(np.uint8),
        "layer": (1 << rng.integers(0, 3, geoms)).astype(np.uint8),
        **{n: rng.uniform(0, 1, geoms).astype(np.float32) for n in ("emission", "specular")},
        "shininess": rng.choice([0.5, 0.0, 1.0, 0.3], geoms).astype(np.float32),
        "sky": rng.integers(0, 1 << 24, 6 * width * width + width + 2).astype(np.int32),
        "light_is_point": rng.integers(0, 2, lights).astype(np.int32),
        "light_is_active": rng.integers(0, 2, lights).astype(np.uint8),
        "light_casts_shadow": rng.integers(0, 2, lights).astype(np.uint8),
        "attenuation": rng.uniform(0, 1, (lights, 3)).astype(np.float32),
        "headlight": rng.uniform(0, 1, 9).astype(np.float32),
    }
    scene = Scene(geoms, lights, width, int(rng.integers(2)), 0.01, 30.0)
    for name in POINTERS:
        setattr(scene, name, address(fixed[name]))
    if rng.random() < 0.3:
        scene.sky = None
    structs = Rows(**{name: Field.of(array, True) for name, array in arrays.items()})
    # Now and then more than one tile: see tiles.inc.
    most = 100 if rng.random() < 0.1 else 34
    height, wide = (int(x) for x in rng.integers(1, most, 2))
    rgb = np.full((rows, height, wide, 3), 99, np.uint8)
    depth, found = np.empty(rgb.shape[:3], np.float32), np.empty(rgb.shape[:3], np.int32)
    output = Output(
        int(rng.integers(-1, 2)), int(rng.integers(2)), rgb.ctypes.data, depth.ctypes.data,
        found.ctypes.data, rgb.strides[0], depth.strides[0], found.strides[0],
    )  # fmt: skip
    order = Order(
        rows, 1, wide, height, int(rng.integers(2)), int(rng.choice([-1, 0, 8, 300])),
        int(rng.integers(2)), 1, lanes, int(rng.integers(2)),
        np.arange(rows, dtype=np.int32).ctypes.data, ctypes.addressof(output),
    )  # fmt: skip
    numbers = np.arange(rows, dtype=np.int32)
    order.row = numbers.ctypes.data
    order.free_view.mat[:] = rotation(rng).tolist()
    order.free_view.fovy = 45.0
    kept = ctypes.c_void_p(layers if rng.random() < 0.5 else None)
    assert library.render(
        ctypes.byref(scene), ctypes.byref(structs), ctypes.byref(order), kept
    ) == 0  # fmt: skip
    assert np.all(np.isfinite(depth)), "a depth is not finite"
    assert found.min() >= -1 and found.max() < geoms, "a geom that does not exist"


if __name__ == "__main__":
    fuzz(ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print("ok")
