"""Draw splats of your own: a wall in the room, and something that follows the gripper.

Clouds that you captured are used in the same way: put their PLY files in the place of these two.
"""

import tempfile
from pathlib import Path

import numpy as np

import maniple
from maniple.data.video import save_png, tile
from maniple.splat.cloud import C0, Cloud, make_cloud
from maniple.splat.files import write_cloud

SCENE = """
format: splatscene/1
background: [0.75, 0.82, 0.90]
clouds:
  - {file: wall.ply, pos: [-0.3, 0.1, 0.3]}   # the world's frame, metres
  - {file: glow.ply, body: gripper_base}      # follows this body
"""


def box(count: int, half_m: tuple[float, ...], colour: tuple[float, ...]) -> Cloud:
    """Return small Gaussians all over a box."""
    rng = np.random.default_rng(0)
    rgb = np.clip(np.array(colour) + 0.1 * rng.normal(size=(count, 1)), 0, 1)
    return make_cloud(
        rng.uniform(-1, 1, (count, 3)) * half_m,
        rng.normal(size=(count, 4)),
        np.full((count, 3), 0.012),
        np.full(count, 0.9),
        ((rgb - 0.5) / C0)[:, None],
    )


def main() -> None:
    """Write the scene, and draw a task as splats alone and among simulated geoms."""
    folder = Path(tempfile.mkdtemp(prefix="maniple-"))
    write_cloud(box(4000, (0.02, 0.6, 0.3), (0.3, 0.5, 0.4)), folder / "wall.ply")
    write_cloud(box(300, (0.04, 0.04, 0.04), (0.9, 0.7, 0.2)), folder / "glow.ply")
    (folder / "scene.yaml").write_text(SCENE)
    options = {"cameras": ("front",), "image_size": (256, 256)}
    pictures = []
    for renderer in ("splat", "hybrid"):
        scene = str(folder / "scene.yaml")
        envs = maniple.make_vec("piper/Reach-v0", 2, renderer=renderer, scene=scene, **options)
        pictures += list(envs.reset(seed=0)[0]["front_rgb"])
        envs.close()
    save_png(folder / "pictures.png", tile(pictures, 2))
    print(f"wrote {folder / 'pictures.png'}")


if __name__ == "__main__":
    main()
