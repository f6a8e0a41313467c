"""Draw random rubbish with a compiled rasteriser, straight through its structs.

python splat_fuzz_kernel.py LIBRARY COUNT SEED
"""

import ctypes
import sys

import numpy as np

from maniple.sim.kernel.structs import Field, FreeView
from maniple.splat.structs import (
    CHUNK,
    COLOUR,
    DISC,
    GRADIENTS,
    KINDS,
    LOG2_OPACITY,
    ROW_FIELDS,
    Chunk,
    CloudStruct,
    Descent,
    Group,
    Order,
    Output,
    Rows,
    Training,
)  # fmt: skip

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1e38, -1e38, -1.0])
FLOATS = ("light_ambient", "light_diffuse", "light_specular")
DTYPES = {"rgb": np.uint8, "depth": np.float32, "segmentation": np.int32, "colour": np.float32}


def rubbish(rng, values, share=0.02):
    """Put odd numbers into an array here and there."""
    if rng.random() < 0.5:
        odd = rng.random(values.shape) < share
        values[odd] = rng.choice(ODD, odd.sum())
    return values


def fuzz(library, count, seed):
    """Draw `count` scenes; every picture must be finite and name only labels that exist."""
    rng = np.random.default_rng(seed)
    widest = library.kernel_widest()
    library.layers_new.restype = ctypes.c_void_p
    layers = ctypes.c_void_p(library.layers_new(ctypes.c_int64(200_000)))
    for _ in range(count):
        one(library, rng, layers, [4, widest][rng.integers(2)])
    library.layers_free(layers)


def cloud(rng, bodies, labels, keep):
    """A scene of some groups."""
    counts = rng.integers(1, 40, rng.integers(1, 4))
    padded = [int(-(-n // 8) * 8) for n in counts]
    total = sum(padded)
    coefficients = int(rng.choice([1, 4, 9, 16]))
    planes = rng.normal(size=(COLOUR + 3 * coefficients, total)).astype(np.float32)
    planes[3:12] *= 10.0 ** rng.uniform(-4, 1)
    planes[LOG2_OPACITY] = -np.abs(planes[LOG2_OPACITY])
    planes[13] = np.abs(planes[3:12]).max(0)
    planes = np.ascontiguousarray(rubbish(rng, planes, 0.005))
    groups = (Group * len(counts))()
    chunks = []
    start = 0
    for k, (count, size) in enumerate(zip(counts, padded, strict=True)):
        planes[LOG2_OPACITY, start + count : start + size] = -1000
        groups[k] = Group(int(rng.integers(bodies)), int(rng.integers(8)), coefficients,
                          int(rng.integers(2)), float(rng.choice([0.1, 0.3])))  # fmt: skip
        for first in range(start, start + size, CHUNK):
            chunks.append(Chunk(first, min(CHUNK, start + size - first), k, radius=100.0))
        start += size
    table = (Chunk * len(chunks))(*chunks)
    label = rng.integers(0, labels, total).astype(np.int32)
    sky = rng.random((int(rng.integers(1, 5)), 3)).astype(np.float32)
    lights = int(rng.integers(0, 4))
    own = {
        "light_is_point": rng.integers(0, 2, lights + 1).astype(np.int32),
        "light_is_active": rng.integers(0, 2, lights + 1).astype(np.uint8),
        "attenuation": rng.random((lights + 1, 3)).astype(np.float32),
        "headlight": rng.random(9).astype(np.float32),
    }
    keep += [planes, groups, table, label, sky, own]
    struct = CloudStruct(total, len(groups), len(chunks), lights, labels, len(sky),
                         int(rng.integers(2)), 0.01, 30.0)  # fmt: skip
    struct.planes, struct.label, struct.sky_table = (a.ctypes.data for a in (planes, label, sky))
    struct.group, struct.chunk = ctypes.addressof(groups), ctypes.addressof(table)
    for name, array in own.items():
        setattr(struct, name, array.ctypes.data)
    return struct, lights, total


def one(library, rng, layers, lanes):
    """Draw one scene, and take a gradient of it."""
    keep = []
    bodies, labels, rows = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 3))
    struct, lights, total = cloud(rng, bodies, labels, keep)
    sizes = {"xpos": (bodies, 3), "xmat": (bodies, 9), "cam_xpos": (2, 3), "cam_xmat": (2, 9),
             "cam_fovy": (2, 1)}  # fmt: skip
    sizes |= {name: (lights + 1, 3) for name in ROW_FIELDS if name.startswith("light")}
    table = Rows()
    for name in ROW_FIELDS:
        values = rng.normal(size=(rows, *sizes[name]))
        if name.endswith("mat"):
            values = np.array([[np.linalg.qr(rng.normal(size=(3, 3)))[0].ravel()
                                for _ in range(sizes[name][0])] for _ in range(rows)])  # fmt: skip
        elif name == "cam_fovy":
            values = rng.uniform(1, 179, values.shape)
        values = rubbish(rng, values).astype(np.float32 if name in FLOATS else np.float64)
        keep.append(np.ascontiguousarray(values))
        setattr(table, name, Field.of(keep[-1], True))
    if rng.random() < 0.3:
        keep.append(rng.normal(size=(rows, labels, 6)).astype(np.float32))
        table.tint = Field.of(keep[-1], True)
    height, width = (int(n) for n in rng.integers(1, 40, 2))
    if rng.random() < 0.05:
        width = int(rng.integers(100, 700))  # more than 64 blocks of pixels in a row
    outputs = (Output * 2)()
    pictures = []
    has_solid = rng.random() < 0.3
    for camera, output in enumerate(outputs):
        output.camera, output.is_still = camera - int(rng.integers(2)), int(rng.integers(2))
        for kind in KINDS:
            if rng.random() < 0.3:
                continue
            last = {"rgb": (3,), "colour": (4,)}.get(kind, ())
            pictures.append((kind, np.full((rows, height, width, *last), 77, DTYPES[kind])))
            setattr(output, kind, pictures[-1][1].ctypes.data)
            setattr(output, f"{kind}_stride", pictures[-1][1].strides[0])
        for kind in KINDS[:3] if has_solid else ():
            last = (3,) if kind == "rgb" else ()
            values = rng.random((rows, height, width, *last)) * 3 + 0.01
            keep.append(np.ascontiguousarray(values, DTYPES[kind]))
            setattr(output, f"solid_{kind}", keep[-1].ctypes.data)
            setattr(output, f"solid_{kind}_stride", keep[-1].strides[0])
    numbers, plain = np.arange(rows, dtype=np.int32), np.ones(rows, np.uint8)
    order = Order(rows, 2, width, height, int(rng.integers(1, 3)), lanes, numbers.ctypes.data,
                  plain.ctypes.data, ctypes.addressof(outputs), FreeView(fovy=45.0))  # fmt: skip
    order.free_view.mat[:] = np.eye(3).ravel().tolist()
    for _ in range(2):
        kept = layers if rng.random() < 0.7 else None
        failed = library.render(
            ctypes.byref(struct), ctypes.byref(table), ctypes.byref(order), kept
        )
        assert failed == 0
    for kind, picture in pictures:
        if kind == "segmentation":
            assert picture.min() >= -1 and picture.max() < max(labels, 4)
        if kind == "depth":
            assert np.isfinite(picture).all() and picture.max() <= 30.0
    train(library, rng, struct, table, order, total, height, width)


def train(library, rng, struct, table, order, total, height, width):
    """Take a gradient, and follow it."""
    target = rng.random((height, width, 3)).astype(np.float32)
    depth = rng.uniform(0, 40, (height, width)).astype(np.float32)
    gradient, seen = np.zeros((GRADIENTS, total), np.float32), np.zeros(total, np.float32)
    loss = np.zeros(2)
    training = Training(target.ctypes.data, depth.ctypes.data, 0.1, gradient.ctypes.data,
                        seen.ctypes.data, loss.ctypes.data)  # fmt: skip
    library.train(ctypes.byref(struct), ctypes.byref(table), ctypes.byref(order),
                  ctypes.byref(training))  # fmt: skip
    discs = np.zeros(total, DISC)
    discs["turn"], discs["at"], discs["unit"] = np.eye(3), np.arange(total), 0.1
    descent = Descent(total, discs.ctypes.data, gradient.ctypes.data, struct.planes, total)
    library.descend(ctypes.byref(descent))


if __name__ == "__main__":
    fuzz(ctypes.CDLL(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print("ok")
