"""Open a dataset with LeRobot's own reader, and print what it saw as JSON.

Run by test_oracle.py with an interpreter that has lerobot. Where torchvision is missing, which has
no build for every torch, a stand-in gives LeRobot the two things that it takes from there.
"""

import json
import sys

from torchvision_standin import stand_in_for_torchvision


def main(root, other=None):
    stand_in_for_torchvision()
    import lerobot
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    dataset = LeRobotDataset("local/ours", root=root, video_backend="pyav")
    items = [dataset[i] for i in range(len(dataset))]
    fps = dataset.meta.fps
    # Windows over time, as its policies ask for them.
    deltas = {"action": [0.0, 1 / fps, 2 / fps]}
    deltas |= {key: [-1 / fps, 0.0] for key in dataset.meta.camera_keys}
    windows = LeRobotDataset("local/ours", root=root, video_backend="pyav", delta_timestamps=deltas)
    last = windows[len(windows) - 1]
    answer = {
        "version": lerobot.__version__,
        "episodes": dataset.num_episodes,
        "frames": len(dataset),
        "cameras": dataset.meta.camera_keys,
        "tasks": [item["task"] for item in items],
        "state": [item["observation.state"].tolist() for item in items],
        "action": [item["action"].tolist() for item in items],
        "reward": [item["next.reward"].item() for item in items],
        "done": [item["next.done"].item() for item in items],
        "pictures": {
            key: [(255 * item[key]).round().mean((1, 2)).tolist() for item in items]
            for key in dataset.meta.camera_keys
        },
        "shapes": {key: list(items[0][key].shape) for key in items[0] if key != "task"},
        "stats": sorted(dataset.meta.stats),
        "padded": last["action_is_pad"].tolist(),
        "windows": {key: list(last[key].shape) for key in deltas},
    }
    if other:
        answer["merged"] = merge(root, other)
    print(json.dumps(answer))


def merge(root, other):
    """Join the dataset with itself by LeRobot's tools, for our reader to open."""
    from lerobot.datasets.aggregate import aggregate_datasets

    aggregate_datasets(
        repo_ids=["local/ours", "local/ours"], aggr_repo_id="local/both",
        roots=[__import__("pathlib").Path(root)] * 2, aggr_root=__import__("pathlib").Path(other),
    )  # fmt: skip
    return True


main(*sys.argv[1:])
