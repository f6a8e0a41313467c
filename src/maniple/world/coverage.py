"""Count how much of the workspace was visited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import Layout

VOXEL_M, SQUARE_M = 0.02, 0.1
GRIPPERS = ("tip_pos", "gripper_pose", "ee_pos", "tip_pose")
"""Names under which observations tell where the gripper is."""
OBJECTS = ("cube_pose", "object_pose", "block_pose", "target_pos")
BASES = ("base_pose",)
"""The same for a base that is driven: two coordinates and its heading."""
CELLS = {
    "gripper": (GRIPPERS, VOXEL_M),
    "object": (OBJECTS, VOXEL_M),
    "base": (BASES, (SQUARE_M, SQUARE_M, np.pi / 4)),
}
"""What is counted, under which names observations tell it, and the size of a cell."""
GRIPPER_FINENESS, BASE_FINENESS = 6.0, 1.0
"""A gripper is somewhere else a few centimetres further; a base has far to go, and goes a long way
only if places beside each other count as one."""


class Place(NamedTuple):
    """Numbers of a state that say where a robot is, and how finely places are told apart."""

    numbers: tuple[int, ...]
    fineness: float = GRIPPER_FINENESS


def find_place(layout: Layout, states: tuple[str, ...]) -> Place | None:
    """Find a driven base among the numbers of a state, else the gripper; None: neither is told."""
    at, found = 0, {}
    for name in states:
        if name in BASES:
            found.setdefault("base", Place((at, at + 1, at + 2), BASE_FINENESS))
        elif name in GRIPPERS:
            found.setdefault("gripper", Place((at, at + 1, at + 2)))
        at += layout[name].size
    return found.get("base") or found.get("gripper")


class Coverage:
    """Distinct cubes of two centimetres that the gripper, and an object, have been in.

    Of a driven base: squares of ten centimetres, in each of eight headings.
    """

    def __init__(self) -> None:
        self._seen: dict[str, set[tuple[int, ...]]] = {"gripper": set(), "object": set()}

    def add(self, obs: Mapping[str, NDArray]) -> None:
        """Note one step of all rows; what the observations do not tell is not counted."""
        for kind, (names, size) in CELLS.items():
            name = next((n for n in names if n in obs), None)
            if name is not None:
                place = np.array(obs[name])[:, :3]
                if names is BASES:
                    place[:, 2] %= 2 * np.pi  # headings are told unwrapped
                cells = np.floor(place / size).astype(int)
                self._seen.setdefault(kind, set()).update(map(tuple, cells.tolist()))

    def metrics(self) -> dict[str, float]:
        """How many there are."""
        return {f"coverage/{kind}": float(len(cells)) for kind, cells in self._seen.items()}

    def cells(self, kind: str = "gripper") -> NDArray[np.int32]:
        """All that were visited, (N, 3)."""
        return np.array(sorted(self._seen[kind]), np.int32).reshape(-1, 3)

    def state(self) -> dict[str, NDArray]:
        """Return everything as arrays."""
        return {kind: self.cells(kind) for kind in self._seen}

    def load_state(self, state: Mapping[str, NDArray]) -> None:
        """Go on from there."""
        self._seen = {kind: set(map(tuple, cells.tolist())) for kind, cells in state.items()}
