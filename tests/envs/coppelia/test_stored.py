"""Stored demonstrations are read as data: nothing that a file names is ever called."""

import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.data.demos import load
from maniple.data.video import save_png
from maniple.envs.rlbench.config import RLBenchConfig
from maniple.envs.rlbench.safe_pickle import Thing, read_pickle
from maniple.envs.rlbench.stored import DEPTH_STEPS, find_demos, load_demo


@pytest.fixture
def classes(monkeypatch):
    """RLBench's classes, only for as long as a file is written."""
    for name in ("rlbench", "rlbench.demo", "rlbench.backend", "rlbench.backend.observation"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    kinds = {}
    for module, name in (("rlbench.demo", "Demo"), ("rlbench.backend.observation", "Observation")):
        kind = type(name, (), {"__module__": module})
        setattr(sys.modules[module], name, kind)
        kinds[name] = kind
    yield kinds
    monkeypatch.undo()


def make_demo(kinds, steps, height, width):
    rng = np.random.default_rng(0)
    rows = []
    for k in range(steps):
        row = kinds["Observation"]()
        row.joint_velocities, row.joint_positions = rng.normal(size=7), rng.normal(size=7)
        row.joint_forces = np.asfortranarray(rng.normal(size=7))
        row.gripper_open = float(k < 3)
        row.gripper_pose = rng.normal(size=7)
        row.front_rgb = None
        row.misc = {"front_camera_near": np.float64(0.01), "front_camera_far": 4.5}
        rows.append(row)
    demo = kinds["Demo"]()
    demo._observations, demo.random_seed = rows, np.random.RandomState(3).get_state()
    return demo


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_demonstration(tmp_path, classes, protocol):
    demo = make_demo(classes, 5, 8, 12)
    folder = tmp_path / "open_drawer/variation2"
    episode = folder / "episodes/episode0"
    episode.mkdir(parents=True)
    (episode / "low_dim_obs.pkl").write_bytes(pickle.dumps(demo, protocol))
    (folder / "variation_descriptions.pkl").write_bytes(pickle.dumps(["open it", "pull"], protocol))
    depth = np.linspace(0.1, 4.0, 8 * 12).reshape(8, 12)
    code = np.round((depth - 0.01) / 4.49 * DEPTH_STEPS).astype(np.int64)
    coded = np.stack([code >> 16, code >> 8 & 255, code & 255], -1).astype(np.uint8)
    mask = np.full((8, 12, 3), (5, 2, 1), np.uint8)
    for k in range(5):
        save_png(episode / f"front_rgb/{k}.png", np.full((8, 12, 3), 20 * k, np.uint8))
        save_png(episode / f"front_depth/{k}.png", coded)
        save_png(episode / f"front_mask/{k}.png", mask)
    expected = demo._observations
    del sys.modules["rlbench"], sys.modules["rlbench.demo"]

    found = find_demos(tmp_path, "OpenDrawer")
    assert [(d.variation, d.sentences) for d in found] == [(2, ("open it", "pull"))]
    config = RLBenchConfig(
        "OpenDrawer", cameras=("front",), image_size=(8, 12), image_kinds=("rgb", "depth", "mask")
    )
    read = load_demo(found[0], config)
    assert read["sentence"] == "open it" and read["action"].shape == (4, 8)
    np.testing.assert_allclose(read["obs"]["joint_forces"][1], expected[1].joint_forces, rtol=1e-6)
    np.testing.assert_allclose(read["action"][0, :7], expected[1].gripper_pose, rtol=1e-6)
    assert read["action"][:, 7].tolist() == [1, 1, 0, 0]
    assert (read["obs"]["front_rgb"][3] == 60).all()
    np.testing.assert_allclose(read["obs"]["front_depth"][0], depth, atol=1e-5)
    assert (read["obs"]["front_mask"] == 5 + 2 * 256 + 65536).all()


def test_stored_demonstrations_become_a_dataset(tmp_path, classes):
    episode = tmp_path / "rlbench/open_drawer/variation0/episodes/episode0"
    episode.mkdir(parents=True)
    (episode / "low_dim_obs.pkl").write_bytes(pickle.dumps(make_demo(classes, 4, 8, 12)))
    for k in range(4):
        save_png(episode / f"wrist_rgb/{k}.png", np.full((8, 12, 3), 20 * k, np.uint8))
    words = "demos record --task OpenDrawer --cameras wrist --json"
    stored, out = tmp_path / "rlbench", tmp_path / "out"
    words = [*words.split(), "--stored", str(stored), "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "maniple", *words], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (found,) = load(out)
    assert len(found) == 3 and found.success and found.obs["wrist_rgb"].shape == (4, 8, 12, 3)


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_nothing_is_called(tmp_path, protocol):
    """Python's own reader would make the folder."""
    found = read_pickle(pickle.dumps({"a": Bomb(tmp_path / "boom")}, protocol))
    assert isinstance(found["a"], Thing) and found["a"].name.endswith("mkdir")
    assert not (tmp_path / "boom").exists()
    with pytest.raises(AttributeError):
        found["a"].system("true")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        [1, -2, 3.5, True, None, "text", b"bytes", (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), 2**80],
        {"nested": {"list": [[], {}, ()]}},
    ],
)
def test_plain_values(value, protocol):
    found = read_pickle(pickle.dumps(value, protocol))
    if protocol < 3 and isinstance(value, list):
        # Bytes are spelt as a call there, which is not made.
        value = [v for v in value if not isinstance(v, bytes)]
        found = [v for v in found if not isinstance(v, Thing)]
    assert found == value


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.arange(6, dtype=">i4"), np.asfortranarray(np.eye(3)),
     np.zeros((0, 3), np.float32), np.array(True), np.float32(1.5)],
)  # fmt: skip
def test_arrays(array, protocol):
    found = read_pickle(pickle.dumps(array, protocol))
    assert np.array_equal(found, array) and np.asarray(found).shape == np.shape(array)


def test_what_cannot_be_read_is_told(tmp_path):
    for data in (b"", b"not a pickle", pickle.dumps([1, 2])[:-2]):
        with pytest.raises(BadConfig):
            read_pickle(data)
    with pytest.raises(BadConfig):
        read_pickle(pickle.dumps(np.array([object()])))
    with pytest.raises(BadConfig, match="no demonstrations of open_drawer"):
        find_demos(tmp_path, "OpenDrawer")
