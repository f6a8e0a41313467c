"""What is compiled answers like numpy, or not at all."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from maniple.core import pack, quick
from maniple.core.block import Block
from maniple.core.pack import Packer
from maniple.core.spec import ArraySpec, Layout

FLOATS = (np.float16, np.float32, np.float64)


@pytest.fixture(params=["compiled", "plain"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the compiled functions and without them."""
    if request.param == "plain":
        monkeypatch.setattr(quick, "compiled", None)
        monkeypatch.setattr(pack, "compiled", None)
    elif quick.compiled is None:
        pytest.skip("was installed without a C compiler: there is only numpy to test")
    return request.param


def test_compiled_where_there_is_a_compiler() -> None:
    """Our own machines measure what users get."""
    headers = Path(sysconfig.get_path("include"), "Python.h")
    if shutil.which("cc") is None or not headers.exists() or os.environ.get("MANIPLE_PLAIN"):
        pytest.skip("no C compiler, no headers, or not wanted")
    assert quick.compiled is not None, "type: pip install -c constraints.txt -e ."


def test_any_true(backend: str) -> None:
    """Any flag anywhere, also in every second column."""
    for shape in ((0,), (1,), (7,), (2, 5), (2, 300)):
        flags = np.zeros(shape, np.bool_)
        assert not quick.any_true(flags)
        for at in np.ndindex(shape):
            flags[at] = True
            assert quick.any_true(flags)
            assert quick.any_true(flags[..., ::2]) == bool(flags[..., ::2].any())
            flags[at] = False


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 6, 500])
def test_all_finite(backend: str, dtype: type, size: int, bad: float) -> None:
    """One bad number is found wherever it is; the largest good one is good."""
    numbers = np.full(size, np.finfo(dtype).max, dtype)
    assert quick.all_finite(numbers)
    assert quick.all_finite(-numbers)
    for at in {0, size // 2, size - 1}:
        spoilt = numbers.copy()
        spoilt[at] = bad
        assert not quick.all_finite(spoilt)
        assert not quick.all_finite(np.stack([numbers, spoilt], 1)[:, 1])


@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int64, np.uint8])
def test_all_within(backend: str, dtype: type) -> None:
    """The radius itself is within; NaN is not; whole numbers are numbers too."""
    assert quick.all_within(np.array([[1, 0], [0, 1]], dtype), 1.0)
    assert not quick.all_within(np.array([[1, 0], [0, 2]], dtype), 1.0)
    low = np.finfo(dtype).min if np.dtype(dtype).kind == "f" else np.iinfo(dtype).min
    assert quick.all_within(np.array([low], dtype), 1.0) == (low == 0)
    assert quick.all_within(np.array([1], dtype), 1e300)
    if np.dtype(dtype).kind == "f":
        assert not quick.all_within(np.array([0, np.nan], dtype), 1.0)
        assert not quick.all_within(np.array([0, -1.5], dtype), 1.0)


def test_squared_norm_has_the_same_bits_for_one_row_and_many() -> None:
    """Term by term, beside each other or apart."""
    ways = np.random.default_rng(0).normal(size=(50, 6))[:, ::2]
    want = [x * x + y * y + z * z for x, y, z in ways.tolist()]
    assert quick.squared_norm(ways).tolist() == want
    assert [quick.squared_norm(way).item() for way in ways] == want
    assert [quick.squared_norm(way[None]).item() for way in ways] == want


def test_items_without_a_size_are_unknown() -> None:
    """An array of 'V0' or of empty text has no items to divide its bytes by."""
    if quick.compiled is None:
        pytest.skip("was installed without a C compiler: there is only numpy to test")
    for array in (np.zeros(3, "V0"), np.zeros((2, 3), "S0"), np.zeros(0, "V0")):
        assert quick.compiled.any_true(array) is None
        assert quick.compiled.all_finite(array) is None
        assert quick.compiled.all_within(array, 1.0) is None


def test_all_within_compares_as_doubles(backend: str) -> None:
    """The single-precision number next to 0.1 is larger than 0.1."""
    assert not quick.all_within(np.array([0.1], np.float32), 0.1)
    assert quick.all_within(np.array([0.1], np.float64), 0.1)


LAYOUT = Layout(
    {
        "joints": ArraySpec((4,), np.dtype(np.float32), -1.0, 1.0),
        "flag": ArraySpec((), np.dtype(np.bool_)),
        "turn": ArraySpec((3, 3), np.dtype(np.float32)),
        "height": ArraySpec((), np.dtype(np.float32), 0.0, np.inf),
        "count": ArraySpec((2,), np.dtype(np.int64)),
        "half": ArraySpec((2,), np.dtype(np.float16)),
        "picture": ArraySpec((64, 64, 3), np.dtype(np.uint8)),
        "depth": ArraySpec((64, 64), np.dtype(np.float32)),
    }
)
ROWS = 5


def _values(rng: np.random.Generator, rows: int = ROWS) -> dict[str, NDArray]:
    return {
        "joints": rng.normal(size=(rows, 8))[:, ::2],
        "flag": rng.random(rows) < 0.5,
        "turn": rng.normal(size=(rows, 3, 3)),
        "height": rng.normal(size=rows),
        "count": rng.integers(0, 9, (rows, 2)),
        "half": rng.normal(size=(rows, 2)).astype(np.float16),
        "picture": rng.integers(0, 256, (rows, 64, 64, 3), np.uint8),
        "depth": np.full((rows, 64, 64), np.inf, np.float32),
    }


@pytest.mark.parametrize("names", [list(LAYOUT), [n for n in LAYOUT if n != "half"], ["turn"]])
def test_packer_writes_all_rows(backend: str, names: list[str]) -> None:
    """Converted, cut to bounds, strided or not; an infinite depth picture is nobody's fault."""
    block = Block(LAYOUT, ROWS)
    packer = Packer(block, names)
    values = _values(np.random.default_rng(1))
    assert packer.write([values[name] for name in names])
    for name in names:
        spec = LAYOUT[name]
        want = values[name].astype(spec.dtype)
        want = np.clip(want, *spec.bounds()) if spec.dtype.kind == "f" else want
        assert np.array_equal(block[name], want), name
    for name in set(LAYOUT) - set(names):
        assert not block[name].any(), name
    values["turn"][2, 1, 1] = np.nan
    assert not packer.write([values[name] for name in names])
    assert np.isnan(block["turn"][2, 1, 1])


def test_packer_writes_one_row(backend: str) -> None:
    """Values of the array's own type go into their row alone; others are refused."""
    names = [name for name in LAYOUT if name != "half"]
    block = Block(LAYOUT, ROWS)
    packer = Packer(block, names, is_strict=True)
    values = {n: v.astype(LAYOUT[n].dtype) for n, v in _values(np.random.default_rng(2)).items()}
    row = {name: np.asarray(values[name][3]) for name in names}
    assert packer.write_row([row[name] for name in names], 3) is True
    for name in names:
        assert np.array_equal(block[name][3], row[name]), name  # joints are not cut to bounds
        assert not block[name][[0, 1, 2, 4]].any()
    for name, wrong in {
        "joints": row["joints"].astype(np.float64),
        "turn": row["turn"][:2],
        "count": [1, 2],
        "picture": row["picture"][..., :1],
    }.items():
        assert packer.write_row([(row | {name: wrong})[n] for n in names], 3) is None, name
    spoilt = row | {"joints": np.full(4, np.nan, np.float32)}
    assert packer.write_row([spoilt[name] for name in names], 1) is False


def test_packer_writes_what_was_lent(backend: str) -> None:
    """A value that is the row itself stays as it is."""
    block = Block(LAYOUT, ROWS)
    packer = Packer(block, ["picture"], is_strict=True)
    lent = block["picture"][2]
    lent[:] = 7
    assert packer.write_row([lent], 2)
    assert (block["picture"][2] == 7).all()


def test_packer_writes_what_overlaps(backend: str) -> None:
    """A value that is a view of the very memory is read before it is overwritten."""
    block = Block(LAYOUT, ROWS)
    packer = Packer(block, ["joints"], is_strict=True)
    joints = block["joints"]
    joints[2] = [0.1, 0.2, 0.3, 0.4]
    want = joints[2, ::-1].copy()
    assert packer.write_row([joints[2, ::-1]], 2)
    assert np.array_equal(joints[2], want)
    joints[:] = np.arange(ROWS)[:, None] / 10
    want = joints[::-1].copy()
    assert Packer(block, ["joints"]).write([joints[::-1]])
    assert np.array_equal(joints, want)


def test_text_is_no_picture(backend: str) -> None:
    """Bytes have the memory of small numbers, but nobody meant them."""
    block = Block(Layout({"code": ArraySpec((3,), np.dtype(np.uint8))}), 1)
    packer = Packer(block, ["code"], is_strict=True)
    assert packer.write_row([b"abc"], 0) is None
    assert packer.write_row([bytearray(b"abc")], 0) is None
    assert not block["code"].any()


def test_packer_lets_its_arrays_go() -> None:
    """Nothing is held on to, whatever was written or refused."""
    block = Block(LAYOUT, ROWS)
    array = block["turn"]
    before = sys.getrefcount(array), sys.getrefcount(array.base)
    value = np.zeros((ROWS, 3, 3))
    held = sys.getrefcount(value)
    for _ in range(100):
        packer = Packer(block, ["turn"])
        packer.write([value])
        packer.write_row([value], 0)
    del packer
    gc.collect()
    assert (sys.getrefcount(array), sys.getrefcount(array.base)) == before
    assert sys.getrefcount(value) == held


def test_arrays_of_no_numbers(backend: str) -> None:
    """Some spaces are empty."""
    layout = Layout({"none": ArraySpec((0,), np.dtype(np.int32)), "one": ArraySpec((1,))})
    packer = Packer(Block(layout, ROWS), layout)
    assert packer.write([np.zeros((ROWS, 0), np.int32), np.ones((ROWS, 1))])


def test_wrong_number_of_values(backend: str) -> None:
    """Too few values are a mistake of ours, and told."""
    packer = Packer(Block(LAYOUT, ROWS), ["joints", "turn"])
    with pytest.raises(ValueError):
        packer.write([np.zeros((ROWS, 4))])


PLAY = """
import hashlib, maniple, numpy as np
envs = maniple.make_vec("{task}", 3)
envs.reset(seed=5)
seen = hashlib.sha256()
rng = np.random.default_rng(0)
for _ in range(40):
    actions = rng.uniform(-1, 1, envs.action_space.shape).astype(envs.action_space.dtype)
    obs, reward, *_ = envs.step(actions)
    for array in (*obs.values(), reward):
        seen.update(array.tobytes())
print(seen.hexdigest())
"""


@pytest.mark.parametrize("task", ["LeRobot-v0", "so101/LiftCube-v0"])
def test_episodes_have_the_same_bits(task: str) -> None:
    """Whether it was compiled shows in the time it takes, nowhere else."""
    if quick.compiled is None:
        pytest.skip("was installed without a C compiler: there is only numpy to test")
    digests = []
    for plain in ("", "1"):
        environment = os.environ | {"MANIPLE_PLAIN": plain}
        code = [sys.executable, "-c", PLAY.format(task=task)]
        done = subprocess.run(code, env=environment, capture_output=True, text=True, check=True)
        digests.append(done.stdout)
    assert digests[0] == digests[1]
