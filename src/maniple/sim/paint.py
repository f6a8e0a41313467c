"""Show parts of a scene in the colours of a row's episode.

The colour is kept in a note, so that it belongs to the state and costs the physics nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.userdata import add_note, find_note, note_names

PREFIX = "paint."
PALETTE: Mapping[str, tuple[float, float, float]] = {
    "red": (1.0, 0.0, 0.0),
    "maroon": (0.5, 0.0, 0.0),
    "lime": (0.0, 1.0, 0.0),
    "green": (0.0, 0.5, 0.0),
    "blue": (0.0, 0.0, 1.0),
    "navy": (0.0, 0.0, 0.5),
    "yellow": (1.0, 1.0, 0.0),
    "cyan": (0.0, 1.0, 1.0),
    "magenta": (1.0, 0.0, 1.0),
    "silver": (0.75, 0.75, 0.75),
    "gray": (0.5, 0.5, 0.5),
    "orange": (1.0, 0.5, 0.0),
    "olive": (0.5, 0.5, 0.0),
    "purple": (0.5, 0.0, 0.5),
    "teal": (0.0, 0.5, 0.5),
    "azure": (0.0, 0.5, 1.0),
    "violet": (0.5, 0.0, 1.0),
    "rose": (1.0, 0.0, 0.5),
    "black": (0.0, 0.0, 0.0),
    "white": (1.0, 1.0, 1.0),
}
COLOURS = tuple(PALETTE)
_RGB = np.array(list(PALETTE.values()))


def add_paint(spec: mujoco.MjSpec, body: str) -> None:
    """Let every geom of a body that is named after it, as in 'cup.side', change colour."""
    add_note(spec, PREFIX + body)


class Paint:
    """The parts of a model that change colour, and where their colours are noted."""

    def __init__(self, model: mujoco.MjModel) -> None:
        names = [model.geom(i).name for i in range(model.ngeom)]
        self._parts: list[tuple[int, list[int]]] = []
        for note in note_names(model):
            if not note.startswith(PREFIX):
                continue
            body, at = note.removeprefix(PREFIX), find_note(model, note)
            assert at is not None
            geoms = [i for i, n in enumerate(names) if n == body or n.startswith(body + ".")]
            assert geoms, f"no geom is named after {body!r}"
            self._parts.append((at.start, geoms))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def apply_all(self, rgba: NDArray, userdata: NDArray) -> None:
        """Write the colours of all rows, (rows, geoms, 4), as their notes say."""
        for at, geoms in self._parts:
            rgba[:, geoms, :3] = _RGB[userdata[:, at].astype(np.intp)][:, None]

    def apply(self, model: mujoco.MjModel, userdata: NDArray) -> None:
        """Colour a model as one row's notes say."""
        for at, geoms in self._parts:
            model.geom_rgba[geoms, :3] = _RGB[int(userdata[at])]
