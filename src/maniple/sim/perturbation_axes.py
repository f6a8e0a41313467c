"""The ways in which an episode's world may differ, and what their numbers mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from maniple.core.errors import BadConfig, closest


class Axis(NamedTuple):
    """One way in which a world may differ."""

    about: str
    """What its number means."""
    usual: float
    """How far it goes unless a number is given."""
    most: float = np.inf


AXES: Mapping[str, Axis] = {
    "background": Axis("colour of what stands still: ± this, added to red, green and blue", 0.2),
    "object_colour": Axis("colour of what is neither robot nor standing still: likewise", 0.2),
    "patchwork": Axis("colour of every geom by itself, the robot's too: likewise", 0.15),
    "light": Axis("brightness of all lamps: a factor of 1 ± this", 0.4),
    "camera": Axis("place of every camera: ± this, metres along each axis", 0.02),
    "camera_turn": Axis("direction of every camera: ± this, radians about each axis", 0.03),
    "distractors": Axis("so many more things lie about: seen, not felt", 4, 16),
    "start": Axis("joints of the robot at the beginning: ± this, radians or metres", 0.1),
    "pose": Axis("where the objects begin, all shifted alike: ± this, metres in x and y", 0.02),
    "mass": Axis("mass of every body: a factor of 1 ± this", 0.3, 0.99),
    "friction": Axis("friction of all geoms: a factor of 1 ± this", 0.3, 0.99),
    "damping": Axis("damping of all joints: a factor of 1 ± this", 0.3, 0.99),
    "gravity": Axis("gravity: a factor of 1 ± this", 0.1, 0.99),
    "servo": Axis("strength of all servos: a factor of 1 ± this", 0.2, 0.99),
    "action_delay": Axis("actions arrive so many steps late; until then the robot rests", 1, 50),
    "action_noise": Axis("Gaussian noise on actions: its deviation, of half their range", 0.02),
    "observation_noise": Axis(
        "Gaussian noise on observed numbers: its deviation, in their own units", 0.002
    ),
    "pixel_noise": Axis("Gaussian noise on colour pictures: its deviation, of 255 grey levels", 10),
}
KINDS: Mapping[str, str] = {name: axis.about for name, axis in AXES.items()}
USUAL: Mapping[str, float] = {name: axis.usual for name, axis in AXES.items()}
ALIASES: Mapping[str, str] = {
    "colour": "object_colour",
    "color": "object_colour",
    "texture": "patchwork",
    "delay": "action_delay",
    "noise": "observation_noise",
}
"""Other words of the field for axes."""
WHOLE = ("distractors", "action_delay")
"""Axes that count something."""


def axis_of(word: Any) -> Any:
    """Return the axis that a word stands for; whatever is no alias is returned as it is."""
    return ALIASES.get(word, word) if isinstance(word, str) else word


def check_kinds(names: Sequence[str]) -> None:
    """Refuse a kind that does not exist."""
    for name in map(axis_of, names):
        if not isinstance(name, str):
            raise BadConfig(f"perturb has a kind {name!r:.60}; kinds are {', '.join(AXES)}.")
        if name not in AXES:
            meant = closest(name, [*AXES, *ALIASES])
            raise BadConfig(f"perturb has no kind {name!r}.{meant} There are: {', '.join(AXES)}.")


def checked(perturb: Any) -> tuple[tuple[str, float], ...]:
    """Return kinds with how far they may go, from a table or from pairs."""
    pairs = list(perturb.items()) if isinstance(perturb, Mapping) else perturb
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise BadConfig(f"perturb is {perturb!r:.60}; it is a table, as in {{'light': 0.4}}.")
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise BadConfig(f"perturb holds {pair!r:.60}; it takes kinds with a number each.")
        kind, far = axis_of(pair[0]), pair[1]
        check_kinds([kind])
        _check_number(kind, far)
        found.append((str(kind), float(far)))
    return tuple(found)


def _check_number(kind: str, far: Any) -> None:
    is_number = isinstance(far, (int, float, np.integer, np.floating))
    if not is_number or isinstance(far, bool) or not (np.isfinite(far) and far >= 0):
        raise BadConfig(f"perturb {kind!r} is {far!r:.60}; it must be a number, 0 or larger.")
    if far > AXES[kind].most:
        raise BadConfig(f"perturb {kind!r} is {far:g}; it may be {AXES[kind].most:g} at most.")
    if kind in WHOLE and far != round(far):
        raise BadConfig(f"perturb {kind!r} is {far:g}; it must be a whole number.")
