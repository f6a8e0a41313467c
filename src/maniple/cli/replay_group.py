"""Rows of a task in this process, into which recorded states are put."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, ManipleError

FREE = "free"
"""The camera that every model has: all of the scene, from afar."""


def make_group(task: str, settings: dict[str, Any], rows: int) -> Any:
    """Build rows of a task as make_vec would, without an engine around them."""
    from maniple.core.rank import Rank
    from maniple.registry import recipe

    with _told(task):
        made_of = recipe(task, dict(settings))
        if made_of.needs_own_process:
            raise BadConfig("States of CoppeliaSim cannot be recorded or drawn again.")
        return made_of.group(rows, Rank.here().num_cpus())


def checked(task: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings whose cameras and sizes are what they should be."""
    from maniple.envs.config import EnvConfig

    with _told(task):
        config = EnvConfig.of({k: v for k, v in settings.items() if k != "backend"})
    return {**settings, "cameras": config.cameras, "image_size": config.image_size}


@contextmanager
def _told(task: str) -> Iterator[None]:
    """Settings may come from a file that somebody wrote by hand."""
    try:
        yield
    except ManipleError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise BadConfig(f"{task} cannot be made with these settings: {error}.") from None


def group_model(group: Any) -> Any:
    """Return the model that a group simulates."""
    row = group.row(0)
    return row.model if hasattr(row, "model") else row.physics.model


class Shots:
    """Pictures of recorded episodes by camera, (rows, height, width, 3), some steps apart."""

    def __init__(
        self,
        group: Any,
        trajectories: Sequence[Any],
        cameras: Sequence[str],
        size: tuple[int, int],
        every: int,
    ) -> None:
        self.cameras = tuple(cameras)
        self._group, self._trajectories = group, trajectories
        self._size, self._every = size, every

    def __iter__(self) -> Iterator[tuple[int, dict[str, NDArray[np.uint8]]]]:
        from maniple.data.redraw import Redrawing

        names = getattr(self._group.row(0).task, "picture_names", {})
        drawing = Redrawing(self._group, self._trajectories)
        for step, arrays in enumerate(drawing.frames(self._every)):
            pictures = {camera: self._picture(arrays, names, camera) for camera in self.cameras}
            yield step * self._every, pictures

    def _picture(self, arrays: Any, names: Any, camera: str) -> NDArray[np.uint8]:
        name = names.get(f"{camera}_rgb", f"{camera}_rgb")
        if name in arrays:
            return arrays[name]
        # A per-environment task observes what it likes; it is drawn as render() does.
        height, width = self._size
        seen_from = -1 if camera == FREE else camera
        rows = [self._group.row(row) for row in range(len(self._trajectories))]
        return np.stack([row.render(width, height, seen_from) for row in rows])
