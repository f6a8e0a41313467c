"""Write the episodes that a person wants to keep, while the page goes on."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

from maniple.core.errors import ManipleError
from maniple.data.episode import Episode
from maniple.data.lerobot.write import DatasetWriter


class Recording:
    """A dataset that grows, on a thread of its own.

    An episode is counted in `kept` when it is whole on the disk: not even a kill loses it.
    """

    def __init__(self, folder: Path, fps: int, robot: str, origin: dict[str, str]) -> None:
        self.folder = folder
        self._writer = DatasetWriter(folder, fps, robot, origin)
        self.kept = self._writer.episodes
        self.waiting = 0
        self.trouble = ""
        """What went wrong; nothing more is written then."""
        self._queue: queue.SimpleQueue[Episode | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="maniple-recording", daemon=True)
        self._thread.start()

    @property
    def first_seed(self) -> int:
        """A seed that no episode of the dataset has."""
        from maniple.data.lerobot.meta import read_episode_rows

        rows = read_episode_rows(self.folder) if self.kept else []
        return max((int(row.get("seed", -1)) for row in rows), default=-1) + 1

    def add(self, episode: Episode) -> None:
        """Have an episode written soon."""
        if not self.trouble:
            self.waiting += 1
            self._queue.put(episode)

    def close(self) -> None:
        """Write what waits, and let go of the dataset; a second call does nothing."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        while (episode := self._queue.get()) is not None:
            try:
                if not self.trouble:
                    self._writer.add(episode)
                    self.kept = self._writer.episodes
            except Exception as error:
                # The page goes on, and says why nothing more is written.
                is_ours = isinstance(error, ManipleError)
                self.trouble = str(error) if is_ours else f"{type(error).__name__}: {error}"
            self.waiting -= 1
