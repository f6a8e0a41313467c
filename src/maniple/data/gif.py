"""Write an animated GIF with the video library that is there anyway."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import av.error
import av.filter
import numpy as np
from numpy.typing import NDArray

from maniple.core import atomic


def save_gif(path: Path, frames: Sequence[NDArray[np.uint8]], fps: int) -> None:
    """Write frames (height, width, 3) that repeat for ever, in colours chosen for them."""
    height, width = frames[0].shape[:2]
    with (
        atomic.replacing(path) as part,
        av.open(str(part), "w", format="gif", options={"loop": "0"}) as file,
    ):
        stream = file.add_stream("gif", rate=fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "pal8"
        for number, frame in enumerate(_paletted(frames, width, height, fps)):
            frame.pts, frame.time_base = number, Fraction(1, fps)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


def _paletted(
    frames: Sequence[NDArray[np.uint8]], width: int, height: int, fps: int
) -> list[av.VideoFrame]:
    """Reduce frames to 256 colours that all of them share."""
    graph = av.filter.Graph()
    about = f"video_size={width}x{height}:pix_fmt=rgb24:time_base=1/{fps}:pixel_aspect=1/1"
    source = graph.add("buffer", about)
    split, choose = graph.add("split"), graph.add("palettegen")
    use, sink = graph.add("paletteuse", "dither=bayer:bayer_scale=4"), graph.add("buffersink")
    source.link_to(split)
    split.link_to(use, 0, 0)
    split.link_to(choose, 1, 0)
    choose.link_to(use, 0, 1)
    use.link_to(sink)
    graph.configure()
    for number, picture in enumerate(frames):
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        frame.pts, frame.time_base = number, Fraction(1, fps)
        source.push(frame)
    source.push(None)
    found = []
    while True:
        try:
            found.append(sink.pull())
        except (av.error.BlockingIOError, av.error.EOFError):
            return found
