"""Name an episode's arrays as LeRobot names them, and find them again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.episode import Episode
from maniple.data.lerobot.film import film_facts

STATE = "observation.state"
IMAGES = "observation.images."
NEXT = "next."
OURS = "maniple"
"""In a feature's info: the arrays that it holds, by their names and shapes in the Layout."""

COUNTERS = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
"""Columns that every LeRobot dataset has."""

ANSWERS = {
    "next.reward": "float32",
    "next.done": "bool",
    "next.success": "bool",
    "next.terminated": "bool",
    "next.truncated": "bool",
    "episode_seed": "int64",
}
"""What followed each action; the flags are set in the last row only."""

INTERVENTION = "intervention"
"""Column that marks the steps that a person chose, where one could step in."""

_Kind = tuple[tuple[int, ...], np.dtype]
"""Shape and type of one row of an array."""
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Column:
    """One array of a row, as it is stored."""

    key: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Features:
    """How the arrays of an episode are spread over columns and films.

    Vectors of float32 are packed into 'observation.state', in order, so that LeRobot's policies
    find what they expect.
    """

    packed: dict[str, tuple[int, ...]]
    """Arrays that share 'observation.state': name -> shape."""

    single: dict[str, Column]
    """Arrays with a column of their own: name -> column."""

    films: dict[str, Column]
    """Pictures: name -> film."""

    action: Column

    has_next: bool = True
    """The table also has what was seen after each action."""

    is_marked: bool = False
    """The table marks the steps that a person chose."""

    @classmethod
    def of(cls, episode: Episode) -> Features:
        """Decide where every array of an episode goes."""
        arrays = {name: (array.shape[1:], array.dtype) for name, array in episode.obs.items()}
        action = (episode.action.shape[1:], episode.action.dtype)
        return cls._placed(arrays, action, episode.intervention is not None)

    @classmethod
    def of_layout(cls, layout: Layout, action: ArraySpec) -> Features:
        """Decide where every array goes of episodes that have this layout."""
        arrays = {name: (spec.shape, spec.dtype) for name, spec in layout.items()}
        return cls._placed(arrays, (action.shape, action.dtype), is_marked=False)

    @classmethod
    def _placed(cls, arrays: Mapping[str, _Kind], action: _Kind, is_marked: bool) -> Features:
        packed, single, films = {}, {}, {}
        for name, (shape, dtype) in arrays.items():
            if not _SAFE_NAME.fullmatch(name):
                raise BadConfig(
                    f"The array name {name!r} cannot be a column's name. "
                    "Use letters, digits, dots, dashes and underscores."
                )
            if dtype == np.uint8 and len(shape) == 3 and shape[2] == 3:
                films[name] = Column(IMAGES + name.removesuffix("_rgb"), "video", shape)
            elif dtype == np.float32 and len(shape) <= 1:
                packed[name] = shape
            else:
                single[name] = Column(f"observation.{name}", _dtype(name, dtype), shape)
        if packed and "state" in single:
            raise BadConfig(
                f"An array named 'state' of {single['state'].dtype} cannot stand beside vectors "
                "of float32, which are packed under that name; rename it."
            )
        shape, dtype = action
        if len(shape) > 1:
            raise BadConfig(f"A dataset holds actions that are vectors, not of shape {shape}.")
        column = Column("action", _dtype("action", dtype), shape)
        return cls(packed, single, films, column, is_marked=is_marked)

    @classmethod
    def from_info(cls, described: Mapping[str, Any]) -> Features:
        """Read the features of an info.json, ours or another's."""
        if "action" not in described:
            raise BadConfig("The dataset has no feature 'action'; it holds no demonstrations.")
        packed, single, films = {}, {}, {}
        for key, feature in described.items():
            arrays = {name: tuple(shape) for name, shape in _ours(feature).items()}
            shape, dtype = tuple(feature["shape"]), feature["dtype"]
            if dtype == "video":
                name = next(iter(arrays), key.removeprefix(IMAGES) + "_rgb")
                films[name] = Column(key, dtype, shape)
            elif key == STATE and arrays and "state" not in arrays:
                packed = arrays
            elif key.startswith("observation.") and dtype not in ("string", "image"):
                name = key.removeprefix("observation.")
                single[name] = Column(key, dtype, arrays.get(name, shape))
        found = described["action"]
        shape = tuple(_ours(found).get("action", found["shape"]))
        action = Column("action", found["dtype"], shape)
        keys = [STATE] * bool(packed) + [column.key for column in single.values()]
        has_next = all(
            key in described for key in ["next.terminated", *(NEXT + key for key in keys)]
        )
        return cls(packed, single, films, action, has_next, INTERVENTION in described)

    @property
    def state_names(self) -> list[str]:
        """Name every number of 'observation.state', in order."""
        return [word for name, shape in self.packed.items() for word in _words(name, shape)]

    @property
    def columns(self) -> list[Column]:
        """Every column of the observation that is in the table."""
        width = sum(map(prod, self.packed.values()))
        state = [Column(STATE, "float32", (width,))] * bool(self.packed)
        return state + list(self.single.values())

    def info(self, fps: int) -> dict[str, dict[str, Any]]:
        """Describe all features as info.json does."""
        described = {}
        if self.packed:
            names = self.state_names
            described[STATE] = _feature("float32", (len(names),), names, self.packed)
        for name, column in self.single.items():
            described[column.key] = _feature(column.dtype, column.shape, None, {name: column.shape})
        described |= {NEXT + key: feature for key, feature in described.items()}
        for name, film in self.films.items():
            axes = ["height", "width", "channels"]
            described[film.key] = _feature("video", film.shape, axes, {name: film.shape})
            described[film.key]["info"] |= film_facts(film.shape, fps)
        action = self.action
        names = _words("action", action.shape)
        described["action"] = _feature(action.dtype, action.shape, names, {"action": action.shape})
        marks = {INTERVENTION: "bool"} if self.is_marked else {}
        for key, dtype in (marks | ANSWERS | COUNTERS).items():
            described[key] = {"dtype": dtype, "shape": [1], "names": None}
        return described


def _words(name: str, shape: tuple[int, ...]) -> list[str]:
    """Name every number of a vector, as in 'tip_pos.0'."""
    return [f"{name}.{i}" for i in range(shape[0])] if shape else [name]


def _feature(
    dtype: str,
    shape: tuple[int, ...],
    names: list[str] | None,
    arrays: Mapping[str, tuple[int, ...]],
) -> dict[str, Any]:
    # A scalar is a vector of one to LeRobot; only our own facts tell the difference.
    ours = {name: list(shape) for name, shape in arrays.items()}
    return {"dtype": dtype, "shape": list(shape) or [1], "names": names, "info": {OURS: ours}}


def _ours(feature: Mapping[str, Any]) -> dict[str, Any]:
    return (feature.get("info") or {}).get(OURS) or {}


def _dtype(name: str, dtype: np.dtype) -> str:
    if dtype.kind not in "biuf":
        raise BadConfig(f"{name!r} is of {dtype}; a dataset holds numbers.")
    return dtype.name
