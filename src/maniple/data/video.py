"""Write films for people to watch, and pictures."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import av.error
import numpy as np
from numpy.typing import NDArray

from maniple.core.atomic import PART
from maniple.core.errors import ManipleError
from maniple.data.h264 import Encoder, Encoding

FILM_FPS = 25
"""Frames of a film in a second, about: as many as make whole steps."""


class Film:
    """An H.264 film, written frame by frame.

    Its name ends in .part until it is closed: a film without that ending is complete. After a
    crash, the .part file plays up to the last fragment that was written.
    """

    def __init__(self, path: str | Path, fps: int, key_every: int = 25) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._part = self.path.with_name(self.path.name + PART)
        self._encoder: Encoder | None = Encoder(self._part, fps, Encoding(key_every=key_every))
        self.frames = 0

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append a frame, (height, width, 3)."""
        assert self._encoder is not None, "the film is closed"
        self._encoder.add(frame)
        self.frames = self._encoder.frames

    def close(self) -> None:
        """Finish the film and give it its name; a second call does nothing."""
        if self._encoder is None:
            return
        self._encoder.close()
        self._encoder = None
        if self.frames:
            _check_whole(self._part, self.frames)
            self._part.replace(self.path)
        else:
            self._part.unlink(missing_ok=True)

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def real_time(steps_per_s: float) -> tuple[int, int]:
    """Return how many steps apart frames are taken, and how many are shown in a second."""
    every = max(1, round(steps_per_s / FILM_FPS))
    return every, max(1, round(steps_per_s / every))


def _check_whole(path: Path, frames: int) -> None:
    """See that all frames are in the file: FFmpeg does not tell of a full disk.

    Raises:
        ManipleError: Some are missing.
    """
    try:
        with av.open(str(path)) as film:
            found = sum(packet.size > 0 for packet in film.demux(video=0))
    except (av.error.FFmpegError, OSError, IndexError):
        found = 0
    if found < frames:
        raise ManipleError(
            f"{path} holds {found} of {frames} frames: the rest could not be written. Make room."
        )


def save_png(path: str | Path, picture: NDArray[np.uint8]) -> None:
    """Write one picture, (height, width, 3)."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
    codec = av.CodecContext.create("png", "w")
    codec.width, codec.height, codec.pix_fmt = frame.width, frame.height, "rgb24"
    codec.time_base = Fraction(1, 1)
    packets = [*codec.encode(frame), *codec.encode(None)]
    path.write_bytes(b"".join(bytes(packet) for packet in packets))


def tile(pictures: list[NDArray[np.uint8]], columns: int) -> NDArray[np.uint8]:
    """Lay pictures of one size out in a grid, the last row filled up with white."""
    rows = -(-len(pictures) // columns)
    blank = np.full_like(pictures[0], 255)
    padded = pictures + [blank] * (rows * columns - len(pictures))
    lines = [np.concatenate(padded[r * columns : (r + 1) * columns], axis=1) for r in range(rows)]
    return np.concatenate(lines, axis=0)
