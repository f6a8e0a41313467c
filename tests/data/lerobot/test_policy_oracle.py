"""LeRobot's own code loads our policies, and acts and evaluates as ours does.

Skipped unless MANIPLE_LEROBOT_PYTHON names an interpreter that has lerobot and maniple, or what
maniple needs; see docs/how-to/lerobot-policy.md.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import maniple
from maniple.data.lerobot.read import Dataset

PYTHON = os.environ.get("MANIPLE_LEROBOT_PYTHON")
SCRIPT = Path(__file__).with_name("policy_oracle.py")
TASK, EPISODES, SEEN = "so101/Reach-v0", 100, 100
CAMERAS = ["--env.cameras", "front", "--env.image-size", "32", "32"]


@pytest.mark.skipif(not PYTHON, reason="MANIPLE_LEROBOT_PYTHON names no interpreter with lerobot")
@pytest.mark.parametrize(
    "words",
    [
        ["bc", "--demos", "10", "--max-updates", "40"],
        ["bc", "--demos", "10", "--max-updates", "40", *CAMERAS],
    ],
    ids=["numbers", "pictures"],
)
def test_lerobot_acts_as_we_do(words, tmp_path, inside):
    run, out, demos = tmp_path / "run", tmp_path / "out", tmp_path / "demos"
    inside("train", *words, "--task", TASK, "--run-dir", run, "--eval-n-trajs", "4")
    inside("export", run, "--out", out)
    cameras = ("--cameras", "front", "--image-size", "32", "32")
    inside("record", TASK, "--episodes", "40", "--out", demos, *cameras)

    parts = [episode.obs for episode in Dataset(demos)]
    obs = {name: np.concatenate([p[name] for p in parts])[:SEEN] for name in parts[0]}
    names = json.loads((demos / "meta/info.json").read_text())["features"]["observation.state"]
    states = [obs[name] for name in dict.fromkeys(n.partition(".")[0] for n in names["names"])]
    policy = maniple.load_policy(run)
    cameras = [name for name in policy.needs if name.endswith("_rgb")]
    pictures = {name.removesuffix("_rgb"): obs[name] for name in cameras}
    np.savez(tmp_path / "obs.npz", agent_pos=np.concatenate(states, 1), **pictures)

    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    script = [str(PYTHON), str(SCRIPT), out, tmp_path / "obs.npz", demos, str(EPISODES)]
    done = subprocess.run(script, capture_output=True, text=True, env=env, timeout=600)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    assert seen["class"] == "ManiplePolicy" and all(seen["same_processors"])
    assert len(seen["actions"]) == SEEN
    assert np.abs(np.float32(seen["actions"]) - policy.act(obs)).max() < 1e-5
    assert seen["losses"][-1] < seen["losses"][0]
    judged = inside("eval", run, "--episodes", EPISODES, "--no-video", "--json")
    low, high = json.loads(judged.out.splitlines()[-1])["success_ci95"]
    print(f"LeRobot {seen['version']}: success {seen.get('success')}, ours {low:.2f} to {high:.2f}")
    if "success" in seen:
        # Two samples of the same rate: both have an error.
        assert low - 0.1 <= seen["success"] <= high + 0.1
