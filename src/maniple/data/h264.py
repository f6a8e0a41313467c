"""Encode frames as H.264 in an MP4 file."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.container
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig

# A fragment per key frame and no index at the end: what was written stays readable after a kill.
_CRASH_SAFE = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


@dataclass(frozen=True)
class Encoding:
    """How frames are encoded."""

    pixels: str = "yuv420p"
    """FFmpeg's pixel format: yuv420p plays everywhere, yuv444p keeps colour in full resolution."""

    crf: int = 20
    """Constant rate factor of x264: lower is better and larger; 18 looks like the original."""

    key_every: int = 25
    """Frames from one key frame to the next; a reader can seek only to key frames."""

    has_b_frames: bool = True
    """Whether frames may refer to later ones: smaller, and slower to seek in."""

    is_crash_safe: bool = True
    """Whether what was written is readable after a kill; such a file has no index."""

    def x264_options(self) -> dict[str, str]:
        """Return what FFmpeg passes on to x264."""
        options = {"preset": "veryfast", "crf": str(self.crf), "g": str(self.key_every)}
        return options if self.has_b_frames else options | {"bf": "0"}


class Encoder:
    """Writes frames of one size to an MP4 file, one by one.

    Args:
        path: The file; overwritten.
        fps: Frames per second that it is played at.
        encoding: How frames are encoded.
    """

    def __init__(self, path: Path, fps: int, encoding: Encoding) -> None:
        self.frames = 0
        self._fps = fps
        self._encoding = encoding
        options = _CRASH_SAFE if encoding.is_crash_safe else {}
        self._file: Any = av.open(str(path), "w", format="mp4", options=options)
        if encoding.is_crash_safe:
            # Or they stay in FFmpeg's buffer: a kill left 28 bytes of 200 frames on the disk.
            self._file.flags |= av.container.Flags.flush_packets.value
        self._stream: av.VideoStream | None = None

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append a frame, (height, width, 3)."""
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            raise BadConfig(
                f"A frame is (height, width, 3) of uint8, not {frame.shape} of {frame.dtype}."
            )
        if self._encoding.pixels == "yuv420p":
            frame = _even(frame)
        if self._stream is None:
            self._stream = self._new_stream(*frame.shape[:2])
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        picture.pts, picture.time_base = self.frames, Fraction(1, self._fps)
        self.frames += 1
        self._file.mux(self._stream.encode(picture))

    def close(self) -> None:
        """Write the last frames and close the file; a second call does nothing."""
        if self._file is None:
            return
        if self._stream is not None:
            self._file.mux(self._stream.encode(None))
        self._file.close()
        self._file = None

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_stream(self, height: int, width: int) -> av.VideoStream:
        stream = self._file.add_stream("libx264", rate=self._fps)
        stream.width, stream.height = width, height
        stream.pix_fmt = self._encoding.pixels
        stream.options = self._encoding.x264_options()
        # One encoder thread: the cores belong to the simulation.
        stream.thread_count = 1
        return stream


def _even(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Cut off an odd last row or column: 4:2:0 colour needs even sides."""
    height, width = frame.shape[:2]
    return frame[: height - height % 2, : width - width % 2]
