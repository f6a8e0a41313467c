"""Mutate PLY, .splat and scene files, and read what becomes of them."""

from __future__ import annotations

import numpy as np
from splat_scenes import part, random_cloud

from maniple.core.errors import ManipleError
from maniple.splat.files import read_cloud, write_cloud
from maniple.splat.scene import Scene, read_scene, write_scene

NUMBERS = (b"0", b"-1", b"99999999999", b"1e308", b"nan", b"4294967296", b"")
WORDS = (b"vertex", b"float", b"double", b"property", b"element", b"end_header\n", b"label",
         b"[", b"{", b": ", b"&a ", b"*a", b"!!python/object:os.system ", b"\0")  # fmt: skip


def mutate_files(folder, count, seed):
    """Read `count` mutated files; return how many were refused."""
    rng = np.random.default_rng(seed)
    write_cloud(random_cloud(40, 0, 1), folder / "a.ply")
    write_cloud(random_cloud(40), folder / "a.splat")
    write_scene(Scene((part(random_cloud(10), "link"),)), folder / "s.yaml")
    originals = {name: (folder / name).read_bytes() for name in ("a.ply", "a.splat", "s.yaml")}
    refused = 0
    for _ in range(count):
        name = list(originals)[rng.integers(3)]
        path = folder / f"m{name[-6:]}" if name != "s.yaml" else folder / "m.yaml"
        path.write_bytes(mutated(originals[name], rng))
        try:
            read_scene(path) if name == "s.yaml" else read_cloud(path)
        except ManipleError as error:
            assert "\n" not in str(error)
            refused += 1
    return refused


def mutated(data, rng):
    """Change a few things in a file."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = (
            int(rng.integers(0, len(data) + 1)) if rng.random() < 0.5 else int(rng.integers(0, 400))
        )
        kind = rng.integers(5)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at : at + 4] = rng.bytes(4)
        elif kind == 2:
            data[at:at] = WORDS[rng.integers(len(WORDS))]
        elif kind == 3:
            data[at : at + int(rng.integers(1, 9))] = NUMBERS[rng.integers(len(NUMBERS))]
        else:
            data[at : at + 20] = data[: int(rng.integers(0, 200))]
        if not data:
            break
    return bytes(data)
