"""Record an expert, learn from it, judge the policy, and keep both as LeRobot reads them."""

import argparse
import json
import tempfile
from pathlib import Path

from maniple.cli.main import main as maniple
from maniple.data.lerobot.read import Dataset

TASK = "so101/Reach-v0"


def run(*words: object) -> None:
    """Type a command, as in a shell."""
    print("\n$ maniple", *words)
    code = maniple([str(word) for word in words])
    assert code == 0, f"exit code {code}"


def main() -> None:
    """Go from an expert to a judged policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="folder; a temporary one if left")
    parser.add_argument("--episodes", type=int, default=30)
    parser.add_argument("--updates", type=int, default=800)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="maniple-"))
    demos, policy, played = out / "demos", out / "policy", out / "played"
    exported = out / "lerobot-policy"

    # A LeRobotDataset with pictures, and the simulator's states beside it.
    run("record", TASK, "--policy", "expert", "--episodes", options.episodes, "--image-size", 32,
        32, "--out", demos)  # fmt: skip
    run("data", "check", demos)
    # Every episode again, larger and side by side; the states are the recorded bits.
    run("replay", demos, "--no-film", "--grid", "--cameras", "front", "--episodes", 0, 1, 2, 3)

    run("train", "bc", "--task", TASK, "--demo-path", demos, "--max-updates", options.updates,
        "--run-dir", policy)  # fmt: skip
    run("eval", policy, "--episodes", 50, "--perturb", "pose,servo,observation_noise",
        "--page", out / "judged.html")  # fmt: skip

    # The policy in the form of LeRobot's pretrained ones: --policy.path=... there.
    run("export", policy, "--out", exported)

    # What the policy did, as a dataset of the same kind.
    run("record", policy, "--episodes", 4, "--image-size", 32, 32, "--out", played)
    info = json.loads((played / "meta/info.json").read_text())
    sees = json.loads((exported / "config.json").read_text())["input_features"]
    assert sees.keys() <= info["features"].keys(), "the policy looks at what the dataset has"
    print(f"\nLeRobot {info['codebase_version']}: {sorted(info['features'])[:4]} ...")
    print(f"{sum(e.success for e in Dataset(played))} of 4 episodes solved; look at {out}")


if __name__ == "__main__":
    main()
