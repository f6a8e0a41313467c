"""Demonstrations that arrive while they are learned from."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np

from maniple.core.errors import BadConfig, ManipleError
from maniple.core.spec import ArraySpec, Layout
from maniple.data.demo_mix import append, check_fits
from maniple.data.demos import check_control
from maniple.data.episode import Episode
from maniple.data.lerobot import paths
from maniple.data.lerobot.read import Dataset
from maniple.data.replay_buffer import ReplayBuffer

LOOK_S = 1.0
"""Seconds between two looks at the folder."""


class ArrivingDemos:
    """A replay that is filled with the whole episodes of a dataset, as they are written.

    Of an episode in which a person could step in, only the person's own steps are learned from:
    what the policy did is no demonstration.

    Args:
        folder: The dataset; it need not be there yet.
        layout: What an observation is made of.
        action: What an action is.
        capacity: Transitions to keep.
        first: Demonstrations that are there from the beginning.
        control: How the environments are acted in: actions of another control mean other things.
    """

    def __init__(
        self,
        folder: Path,
        layout: Layout,
        action: ArraySpec,
        capacity: int,
        seed: int = 0,
        stack: int = 1,
        first: list[Episode] | None = None,
        control: str | None = None,
    ) -> None:
        if folder.is_file():
            raise BadConfig(f"demos_from is {folder}, a file; give the folder of a dataset.")
        self.folder, self.layout, self.action = folder, layout, action
        self.ring = ReplayBuffer(layout, action, 1, capacity, seed, stack)
        self._control = control
        check_control(folder, control)  # What is there already is refused at once.
        self.taken = 0
        """Episodes of the dataset that have been read, or left out because they cannot be."""
        self._torn: int | None = None
        self._has_pictures = any(spec.image is not None for spec in layout.values())
        self._next_look_s = 0.0
        self._has_warned = False
        for episode in first or ():
            self._add(episode)

    def look(self) -> int:
        """Take in what was written since the last look; return how many episodes."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return 0
        self._next_look_s = now_s + LOOK_S
        return self._take(None)

    def take_until(self, count: int) -> None:
        """Read the first `count` episodes, as a run had that goes on now.

        Raises:
            BadConfig: They are not there any more.
        """
        self._take(count)
        if self.taken < count:
            raise BadConfig(
                f"The run had learned from {count} episodes of {self.folder}, and there are "
                f"{self.taken}. Bring them back, or begin another --run-dir."
            )

    def _take(self, until: int | None) -> int:
        """Read on as far as it goes; return how many episodes were added."""
        if not (self.folder / paths.INFO_PATH).is_file():
            return 0
        check_control(self.folder, self._control)
        try:
            dataset = Dataset(self.folder, self._has_pictures)
        except (ManipleError, OSError) as error:
            self._warn_of_now(error)
            return 0
        last = len(dataset) if until is None else min(until, len(dataset))
        added = 0
        for number in range(self.taken, last):
            try:
                episode = dataset[number]
            except (ManipleError, OSError) as error:
                if until is None and number + 1 == last and self._torn != number:
                    # The newest may still be on its way to the disk: the next look tells.
                    self._torn = number
                    return added
                warnings.warn(
                    f"Episode {number} of {self.folder} cannot be read, and is left out: {error}",
                    stacklevel=3,
                )
            else:
                self._add(episode)
                added += 1
            self.taken += 1
        return added

    def _warn_of_now(self, error: Exception) -> None:
        # Between two files of one change, as a rule: the next look tells.
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{self.folder} cannot be read just now: {error}", stacklevel=5)

    def _add(self, episode: Episode) -> None:
        check_fits(episode, self.layout, self.action)
        marks = episode.intervention
        if marks is None or np.any(marks):
            append(self.ring, episode)
