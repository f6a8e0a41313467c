"""Put camera pictures into the observation, and write a film and a picture of them."""

import argparse
import tempfile
from pathlib import Path

import numpy as np

import maniple
from maniple.data.video import Film, save_png, tile

TASK = "so101/LiftCube-v0"


def main() -> None:
    """Film four arms from two cameras each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="folder; a temporary one if left")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp(prefix="maniple-"))

    envs = maniple.make_vec(
        TASK,
        4,
        cameras=("front", "wrist"),
        image_kinds=("rgb", "depth"),
        image_size=(96, 128),
    )
    expert = maniple.expert(TASK, 4)
    obs, _ = envs.reset(seed=0)
    for name, spec in envs.layout.items():
        print(f"{name:<12} {spec.dtype!s:<8} {spec.shape}")

    with Film(out / "lift.mp4", fps=25) as film:
        for _ in range(options.steps):
            obs, _, terminated, truncated, _ = envs.step(expert.act(obs))
            expert.reset(terminated | truncated)
            film.add(tile([*obs["front_rgb"], *obs["wrist_rgb"]], columns=4))

    depth = obs["front_depth"][0]
    grey = (255 * np.clip(1.0 - depth, 0.0, 1.0)).astype(np.uint8)
    save_png(out / "depth.png", np.stack([grey] * 3, axis=-1))
    print(f"nearest pixel of the front camera: {depth.min():.2f} m")
    print(f"look at {out / 'lift.mp4'} and {out / 'depth.png'}")
    envs.close()


if __name__ == "__main__":
    main()
