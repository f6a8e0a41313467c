"""Measure how fast frames of a dataset reach a batch."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from world_setup import tell


def loading(options: argparse.Namespace) -> None:
    """Frames per CPU-second that reach a batch: ours, and a loader that seeks for every stretch.

    The latter opens an MP4, seeks and decodes the 9 frames of each stretch that it draws, as data
    loaders do that keep nothing decoded.
    """
    from maniple.cli.main import main
    from maniple.data.lerobot.film import film_frames, read_film
    from maniple.world.episode_cache import load_cached

    with tempfile.TemporaryDirectory() as folder:
        root, cache = Path(folder) / "demos", Path(folder) / "cache"
        main(["demos", "record", "--task", "so101/PushCube-v0", "--episodes", "32", "--out",
              str(root), "--cameras", "front", "--image-size", "64", "64"])  # fmt: skip
        films = sorted(root.rglob("*.mp4"))
        counts = [film_frames(film) for film in films]
        rates = {}
        rng = np.random.default_rng(0)
        for name, length in (("one_frame", 1), ("random_access", STRETCH_FRAMES)):
            begin, drawn = process_time(), 0
            while process_time() - begin < 3:
                film = int(rng.integers(len(films)))
                first = int(rng.integers(max(1, counts[film] - length)))
                drawn += len(read_film(films[film], first, length, 25))
            rates[name] = drawn / (process_time() - begin)
        begin = process_time()
        for film, count in zip(films, counts, strict=True):
            read_film(film, 0, count, 25)
        rates["sequential_decode"] = sum(counts) / (process_time() - begin)
        begin = process_time()
        found = load_cached(root, cache)
        buffer = _filled(found)
        rates["first_read"] = sum(counts) / (process_time() - begin)
        drawing, drawn = process_time(), 0
        for _ in range(options.updates):
            buffer.sample(16, 5, 4)
            drawn += 16 * STRETCH_FRAMES
        end = process_time()
        rates["memory"] = drawn / (end - drawing)
        rates["one_run"] = drawn / (end - begin)
        begin = process_time()
        _filled(load_cached(root, cache))
        rates["mapped_read"] = sum(counts) / (process_time() - begin)
    tell(episodes=len(films), frames=sum(counts), updates=options.updates, **rates)
    over = rates["random_access"]
    tell(**{f"{name}_over_random_access": rate / over for name, rate in rates.items()})


STRETCH_FRAMES = 9
"""Of a stretch as the teacher draws it: four frames of history and five that follow."""


def _filled(found: list[Any]) -> Any:
    """Put episodes into the buffer that a teacher learns from."""
    from maniple.data.sequence_buffer import SequenceBuffer, kept
    from maniple.world.source import _described

    layout, action = _described(found[0])
    frames = sum(len(e) + 1 for e in found)
    buffer = SequenceBuffer(kept(layout, ("front_rgb",)), action, frames)
    for episode in found:
        buffer.add(episode)
    return buffer
