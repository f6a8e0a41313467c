"""Draw docs/pictures/arms.gif: six arms at work, each played by its scripted expert.

python scripts/draw_arms.py docs/pictures/arms.gif
"""

import sys
from pathlib import Path

import numpy as np

import maniple
from maniple.data.gif import save_gif
from maniple.data.video import tile

TASKS = {
    "so101/StackCubes-v0": 3,
    "panda/OpenDrawer-v0": 10,  # The drawers face the camera.
    "piper/AppleInBowl-v0": 3,
    "panda/PutRubbishInBin-v0": 3,
    "go2_piper/BananaInBowl-v0": 3,
    "mobile_piper/HandOver-v0": 3,
}
"""With the seed of the episode."""
SIZE = {"height": 168, "width": 224}
FRAMES, FPS = 66, 11


def play(task: str, seed: int) -> list[np.ndarray]:
    """Return pictures of one solved episode, evenly apart, the last of them held for a while."""
    env = maniple.make(task, render_mode="rgb_array", observations="all", **SIZE)
    expert = maniple.expert(task, 1)
    obs, _ = env.reset(seed=seed)
    pictures, has_ended = [env.render()], False
    while not has_ended:
        batch = {name: array[None] for name, array in obs.items()}
        obs, _, terminated, truncated, info = env.step(expert.act(batch)[0])
        pictures.append(env.render())
        has_ended = terminated or truncated
    env.close()
    print(f"{task}: {len(pictures)} steps, {'solved' if info['success'] else 'not solved'}")
    moving = np.linspace(0, len(pictures) - 1, FRAMES - 8).round().astype(int)
    return [pictures[k] for k in moving] + [pictures[-1]] * 8


def main(path: Path) -> None:
    """Draw them side by side."""
    films = [play(task, seed) for task, seed in TASKS.items()]
    frames = [tile(list(pictures), columns=3) for pictures in zip(*films, strict=True)]
    save_gif(path, frames, FPS)
    print(
        f"{path}: {frames[0].shape[1]} x {frames[0].shape[0]}, {path.stat().st_size / 1e6:.2f} MB"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
