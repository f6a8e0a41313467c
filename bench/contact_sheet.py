"""Draw every task of the Panda, at its start and on its way: one PNG to look at.

python bench/contact_sheet.py --out sheet.png          # front and wrist, all thirty
python bench/contact_sheet.py --films films            # an MP4 of each expert, too
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import maniple
from maniple.data.video import Film, save_png, tile
from maniple.registry import RLBENCH


def main() -> None:
    """Draw, and say where."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path, default=Path("contact_sheet.png"))
    options.add_argument("--films", type=Path, help="folder for a film of each expert")
    options.add_argument("--size", type=int, default=160)
    options.add_argument("--seed", type=int, default=7)
    given = options.parse_args()
    pictures: list[np.ndarray] = []
    for name in RLBENCH:
        pictures += draw(name, given.size, given.seed, given.films)
        print(name)
    save_png(given.out, tile(pictures, 12))
    print(f"look at {given.out}")


def draw(name: str, size: int, seed: int, films: Path | None) -> list[np.ndarray]:
    """Return four pictures: the start from the front, half-way from front and wrist, the end.

    An episode that the expert does not solve is not shown; the next seed's is.
    """
    env = maniple.make(name, cameras=("front", "wrist"), image_size=(size, size))
    expert = maniple.expert(name, 1)
    obs, _ = env.reset(seed=seed)
    front, wrist = [obs["front_rgb"]], [obs["wrist_rgb"]]
    while True:
        action = expert.act({key: value[None] for key, value in obs.items()})[0]
        obs, _, terminated, truncated, _ = env.step(action)
        front.append(obs["front_rgb"])
        wrist.append(obs["wrist_rgb"])
        if terminated or truncated:
            break
    env.close()
    if not terminated:
        print(f"{name}: not solved with seed {seed}")
        return draw(name, size, seed + 1, films)
    if films is not None:
        films.mkdir(parents=True, exist_ok=True)
        with Film(films / f"{name}.mp4", fps=10) as film:
            for pair in zip(front, wrist, strict=True):
                film.add(np.concatenate(pair, axis=1))
    half = len(front) // 2
    return [front[0], front[half], wrist[half], front[-1]]


if __name__ == "__main__":
    main()
