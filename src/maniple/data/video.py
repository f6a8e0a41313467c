"""Write films and pictures that survive a crash."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.container
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig

# A fragment per key frame and no index at the end: what was written stays readable after a kill.
CRASH_SAFE = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


class Film:
    """An H.264 film, written frame by frame.

    It carries the ending .part until it is closed, so that a finished film is a whole one.
    """

    def __init__(self, path: str | Path, fps: int, key_every: int = 25) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._part = self.path.with_name(self.path.name + ".part")
        self._fps = fps
        self._key_every = key_every
        self._file: Any = av.open(str(self._part), "w", format="mp4", options=CRASH_SAFE)
        # Finished fragments belong on the disk: a kill left 28 bytes of 200 frames in the buffer.
        self._file.flags |= av.container.Flags.flush_packets.value
        self._stream: av.VideoStream | None = None
        self.frames = 0

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append a frame, (height, width, 3)."""
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            raise BadConfig(
                f"A frame is (height, width, 3) of uint8, not {frame.shape} of {frame.dtype}."
            )
        frame = _even(frame)
        if self._stream is None:
            self._stream = self._begin(*frame.shape[:2])
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        picture.pts = self.frames
        picture.time_base = Fraction(1, self._fps)
        self.frames += 1
        self._file.mux(self._stream.encode(picture))

    def close(self) -> None:
        """Finish the film and give it its name; a second call does nothing."""
        if self._file is None:
            return
        if self._stream is not None:
            self._file.mux(self._stream.encode(None))
        self._file.close()
        self._file = None
        if self.frames:
            self._part.replace(self.path)
        else:
            self._part.unlink(missing_ok=True)

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, height: int, width: int) -> av.VideoStream:
        stream = self._file.add_stream("libx264", rate=self._fps)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "20", "g": str(self._key_every)}
        # One encoder thread: the cores belong to the simulation.
        stream.thread_count = 1
        return stream


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


def _even(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut an odd last row or column off: 4:2:0 colour needs even sides."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]
