"""Film every episode of a vector environment while it runs."""

from __future__ import annotations

import os
import queue
import re
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ClosedError, ManipleError
from maniple.data.video import Film

_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FILM_NAME = re.compile(r"env_(\d+)_.+_episode_(\d+)\.mp4(\.part)?")


class Recorder:
    """Writes one film per environment, camera and episode, on a thread of its own.

    Files are named env_000_front_episode_0000.mp4. An unfinished one ends in .part; only those can
    be lost in a crash. Numbering continues after the films that are in the folder already.

    Args:
        folder: Where the films go.
        cameras: Cameras to film; the observation has an array '<camera>_rgb' for each.
        fps: Frames per second that the films are played at.
        num_envs: Rows of the observation.
        queue_frames: Frames that may wait for the encoder; when they do, add() waits too.
    """

    dropped = 0
    """Frames that were left out: always 0, because add() waits."""

    def __init__(
        self,
        folder: str | Path,
        cameras: Sequence[str],
        fps: int,
        num_envs: int,
        queue_frames: int = 64,
    ) -> None:
        for name, value in (("fps", fps), ("num_envs", num_envs), ("queue_frames", queue_frames)):
            if value < 1:
                raise BadConfig(f"{name} is {value}; it must be 1 or larger.")
        for camera in cameras:
            if not _SAFE_NAME.fullmatch(camera):
                raise BadConfig(
                    f"The camera name {camera!r} cannot be part of a file name. "
                    "Use letters, digits, dots, dashes and underscores."
                )
        self._cameras = tuple(cameras)
        self._num_envs = num_envs
        self._encoder = _Encoder(Path(folder), fps, num_envs, queue_frames)
        self._has_raised = False
        # Without close(), the films are still finished when this is collected or Python exits.
        self._finish = weakref.finalize(self, self._encoder.finish)

    @property
    def frames(self) -> int:
        """Frames that are encoded."""
        return self._encoder.frames

    @property
    def seconds(self) -> float:
        """Time spent encoding, on the recorder's thread."""
        return self._encoder.seconds

    def add(self, obs: Mapping[str, Any], ended: NDArray[np.bool_]) -> None:
        """Film one step of every environment.

        The observation of reset() is a step too. Under autoreset NEXT_STEP, the default, pass on
        what step() returned; under SAME_STEP put the rows of info["final_obs"] in first.

        Args:
            obs: The observation, its pictures (num_envs, height, width, 3) of uint8; copied.
            ended: (num_envs,), True where an episode ended with this step.
        """
        if not self._finish.alive:
            raise ClosedError("The recorder is closed; make a new one.")
        self._raise_error(again=True)
        films = {camera: self._pictures(obs, camera) for camera in self._cameras}
        ended = np.asarray(ended, np.bool_)
        if ended.shape != (self._num_envs,):
            raise BadConfig(f"ended is of shape {ended.shape}, not ({self._num_envs},).")
        for row in range(self._num_envs):
            for camera, pictures in films.items():
                self._encoder.put(_Frame(row, camera, pictures[row].copy()))
            if ended[row]:
                self._encoder.put(_End(row))

    def close(self) -> None:
        """Finish all films, those of unfinished episodes too; a second call does nothing."""
        self._finish()
        self._raise_error(again=False)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pictures(self, obs: Mapping[str, Any], camera: str) -> NDArray[np.uint8]:
        key = f"{camera}_rgb"
        if key not in obs:
            has = ", ".join(k for k in obs if k.endswith("_rgb")) or "no pictures"
            raise BadConfig(
                f"The observation has no {key!r}, only {has}. "
                f"Make the environments with cameras=({camera!r},)."
            )
        found = np.asarray(obs[key])
        is_rgb = found.ndim == 4 and found.shape[3] == 3 and found.dtype == np.uint8
        if not is_rgb or len(found) != self._num_envs:
            raise BadConfig(
                f"{key!r} is ({self._num_envs}, height, width, 3) of uint8, "
                f"not {found.shape} of {found.dtype}."
            )
        return found

    def _raise_error(self, again: bool) -> None:
        error = self._encoder.error
        if error is None or (self._has_raised and not again):
            return
        self._has_raised = True
        raise ManipleError(
            f"Cannot write {self._encoder.writing}: {error}. Make room or choose another folder; "
            "finished films are complete, unfinished ones end in .part."
        ) from error


class _Frame(NamedTuple):
    """A picture for the film of a row and camera."""

    row: int
    camera: str
    picture: NDArray[np.uint8]


class _End(NamedTuple):
    """The end of a row's episode."""

    row: int


class _Encoder:
    """The thread that takes frames from a bounded queue and writes them.

    It does not know its Recorder, so that a forgotten one can be collected.
    """

    def __init__(self, folder: Path, fps: int, num_envs: int, queue_frames: int) -> None:
        self.frames = 0
        self.seconds = 0.0
        self.error: Exception | None = None
        self.writing = folder
        self._owner = os.getpid()
        self._folder = folder
        self._fps = fps
        self._episodes = _first_episodes(folder, num_envs)
        self._films: dict[tuple[int, str], Film] = {}
        self._queue: queue.Queue[_Frame | _End | None] = queue.Queue(queue_frames)
        self._thread = threading.Thread(target=self._run, name="maniple-recorder", daemon=True)
        self._thread.start()

    def put(self, item: _Frame | _End) -> None:
        """Queue an item; wait while the queue is full."""
        self._queue.put(item)

    def finish(self) -> None:
        """Write everything that is queued, and end the thread."""
        if os.getpid() != self._owner:
            return  # A forked child has a copy of this object, but not the thread.
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if self.error is None:
                start = time.perf_counter()
                try:
                    self._handle(item)
                except Exception as error:
                    # From here on the queue is only emptied: add() must not wait for it.
                    self.error = error
                    self._films.clear()
                self.seconds += time.perf_counter() - start
            if item is None:
                return

    def _handle(self, item: _Frame | _End | None) -> None:
        if isinstance(item, _Frame):
            film = self._film(item.row, item.camera)
            self.writing = film.path
            film.add(item.picture)
            self.frames += 1
        elif isinstance(item, _End):
            self._close([key for key in self._films if key[0] == item.row])
            self._episodes[item.row] += 1
        else:
            self._close(list(self._films))

    def _film(self, row: int, camera: str) -> Film:
        if (row, camera) not in self._films:
            name = f"env_{row:03d}_{camera}_episode_{self._episodes[row]:04d}.mp4"
            self.writing = self._folder / name
            self._films[row, camera] = Film(self.writing, self._fps)
        return self._films[row, camera]

    def _close(self, keys: list[tuple[int, str]]) -> None:
        for key in keys:
            film = self._films.pop(key)
            self.writing = film.path
            film.close()


def _first_episodes(folder: Path, num_envs: int) -> list[int]:
    """Return the next episode number of every row, so that no earlier film is overwritten."""
    episodes = [0] * num_envs
    for path in folder.glob("env_*"):
        name = _FILM_NAME.fullmatch(path.name)
        if name and int(name[1]) < num_envs:
            row = int(name[1])
            episodes[row] = max(episodes[row], int(name[2]) + 1)
    return episodes
