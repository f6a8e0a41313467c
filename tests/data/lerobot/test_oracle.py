"""LeRobot's own reader opens our datasets; see docs/how-to/demonstrations.md.

Skipped unless MANIPLE_LEROBOT_PYTHON names an interpreter that has lerobot.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from made import assert_same, episode

from maniple.data.demos import load
from maniple.data.lerobot.write import DatasetWriter

PYTHON = os.environ.get("MANIPLE_LEROBOT_PYTHON")
SCRIPT = Path(__file__).with_name("oracle.py")


@pytest.mark.skipif(not PYTHON, reason="MANIPLE_LEROBOT_PYTHON names no interpreter with lerobot")
def test_lerobot_reads_and_merges_what_we_write(tmp_path):
    made = [episode(0), episode(1, task="Push it"), episode(2, terminated=False)]
    with DatasetWriter(tmp_path / "ours", fps=25, robot="so101") as writer:
        for e in made:
            writer.add(e)
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    env.pop("PYTHONPATH", None)
    words = [str(PYTHON), str(SCRIPT), str(tmp_path / "ours"), str(tmp_path / "both")]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.strip().splitlines()[-1])

    assert seen["episodes"] == 3 and seen["frames"] == sum(map(len, made))
    assert seen["tasks"] == [e.task for e in made for _ in range(len(e))]
    for key, get in (("action", lambda e: e.action), ("reward", lambda e: e.reward)):
        assert np.array_equal(np.float32(seen[key]), np.concatenate([get(e) for e in made]))
    packed = [
        np.concatenate([e.obs["joint_pos"], e.obs["tip_pos"], e.obs["angle"][:, None]], 1)[:-1]
        for e in made
    ]
    assert np.array_equal(np.float32(seen["state"]), np.concatenate(packed))
    ends = np.cumsum([len(e) for e in made]) - 1
    assert np.flatnonzero(seen["done"]).tolist() == ends.tolist()
    colours = np.concatenate([e.obs["front_rgb"][:-1].mean((1, 2)) for e in made])
    assert np.abs(np.array(seen["pictures"]["observation.images.front"]) - colours).max() < 3
    assert seen["shapes"]["observation.images.odd"] == [3, 17, 23]
    assert seen["shapes"]["observation.depth"] == [4, 6]
    assert seen["padded"] == [False, True, True]

    # Its tools joined the dataset with itself, many episodes per file: ours reads that again.
    both = load(tmp_path / "both")
    for a, b in zip(made + made, both, strict=True):
        assert_same(a, b)
