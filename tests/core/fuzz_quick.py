"""Throw arrays of all kinds at a build of _quick.c; run by test_quick_sanitized.py."""

import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

import numpy as np

DTYPES = ("f8", "f4", "f2", "?", "i1", "u1", "i8", "V0", "V3", "S2", "O", ">f8", "c16")


def load(path):
    """Import the extension from a file."""
    spec = spec_from_loader("_quick", ExtensionFileLoader("_quick", path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def values(rng, shape, dtype):
    """Random numbers of a type, now and then with NaN, infinity or the largest number."""
    dtype = np.dtype(dtype)
    if dtype.kind in "VSO":
        return np.zeros(shape, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.array(rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3)).astype(dtype)
    if dtype.kind == "f" and array.size and rng.random() < 0.3:
        bad = rng.choice([np.nan, np.inf, -np.inf, float(np.finfo(dtype).max)])
        array[tuple(rng.integers(0, n) for n in shape)] = bad
    return array


def view(rng, shape, dtype):
    """An array of a shape whose items lie together, apart, backwards, repeated or askew."""
    shape, way = tuple(shape), rng.integers(6)
    if way == 1 and shape:
        return values(rng, tuple(2 * n for n in shape), dtype)[
            tuple(slice(None, None, 2) for _ in shape)
        ]
    if way == 2:
        return values(rng, shape, dtype)[tuple(slice(None, None, -1) for _ in shape)]
    if way == 3:
        return values(rng, shape[::-1], dtype).T
    if way == 4:
        return np.broadcast_to(values(rng, (), dtype), shape)
    if way == 5 and np.dtype(dtype).kind not in "O" and np.dtype(dtype).itemsize:
        # Not where such an item should begin.
        itemsize = np.dtype(dtype).itemsize
        raw = np.zeros(int(np.prod(shape)) * itemsize + 1, np.uint8)
        array = np.ndarray(shape, dtype, raw[1:].data)
        array[...] = values(rng, shape, dtype)
        return array
    return values(rng, shape, dtype)


def shape_of(rng, most=4):
    return tuple(rng.integers(0, 5, rng.integers(0, most)).tolist())


def check_reductions(quick, rng):
    array = view(rng, shape_of(rng), rng.choice(DTYPES))
    answer = quick.any_true(array)
    assert answer is None or answer == bool(array.any())
    answer = quick.all_finite(array)
    assert answer is None or answer == bool(np.isfinite(array).all())
    radius = float(rng.choice([0.0, 1.0, 1e300]))
    answer = quick.all_within(array, radius)
    assert answer is None or answer == bool((np.abs(array.astype(float)) <= radius).all())


def check_packer(quick, rng):
    rows = int(rng.integers(0, 4))
    count = int(rng.integers(0, 4))
    targets, bounds = [], []
    for _ in range(count):
        dtype = rng.choice(["f8", "f4", "?", "u1", "i8", "f2"])
        shape = shape_of(rng, 3)
        # Columns of a wider array, as a Block packs them.
        width = int(np.prod(shape))
        wide = np.zeros((rows, width + 3), dtype)
        targets.append(wide[:, 1 : 1 + width].reshape(rows, *shape))
        is_number = np.dtype(dtype).kind == "f" and dtype != "f2" and rng.random() < 0.7
        limits = np.full(shape, -1.0).astype(dtype), np.ones(shape, dtype)
        bounds.append(limits if is_number else None)
    try:
        packer = quick.Packer(targets, bounds, bool(rng.integers(2)))
    except ValueError:
        return
    for _ in range(4):
        row = int(rng.integers(-1, rows + 1))
        given = []
        for target in targets:
            dtype = rng.choice([target.dtype.str, *DTYPES])
            shape = target.shape if row < 0 else target.shape[1:]
            if rng.random() < 0.1:
                shape = shape_of(rng)
            choice = rng.random()
            if choice < 0.1:
                given.append(target if row < 0 or row >= rows else target[row])
            elif choice < 0.2:
                given.append(rng.choice([b"text", None, 1.5, "x"]))
            else:
                given.append(view(rng, shape, dtype))
        if rng.random() < 0.05:
            given.append(1)
        before = [np.array(v) if isinstance(v, (np.ndarray, np.generic)) else None for v in given]
        try:
            answer = packer.write(given, row) if row >= 0 else packer.write(given)
        except IndexError:
            assert row >= rows and count
            continue
        if answer is None:
            continue
        for target, limits, value in zip(targets, bounds, before, strict=True):
            want = value.astype(target.dtype)
            want = want if limits is None else np.clip(want, *limits)
            got = target if row < 0 else target[row]
            assert np.array_equal(got, want, equal_nan=want.dtype.kind == "f")


def main(path, seed, rounds):
    quick = load(path)
    rng = np.random.default_rng(int(seed))
    with np.errstate(all="ignore"):
        for _ in range(int(rounds)):
            check_reductions(quick, rng)
            check_packer(quick, rng)
    for wrong in ((), (1,), (np.zeros(2), "x"), (np.zeros(2), 1.0, 2)):
        try:
            quick.all_within(*wrong)
        except TypeError:
            continue
        raise AssertionError(wrong)
    print("fuzzed")


if __name__ == "__main__":
    main(*sys.argv[1:])
