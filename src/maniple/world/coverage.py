"""Count how much of the workspace was visited."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import Layout

VOXEL_M = 0.02
GRIPPERS = ("tip_pos", "gripper_pose", "ee_pos", "tip_pose")
"""Names under which observations tell where the gripper is."""
OBJECTS = ("cube_pose", "object_pose", "block_pose", "target_pos")
BASES = ("base_pose",)
"""Where a base that is driven is: two coordinates and its heading."""


def place_numbers(layout: Layout, states: tuple[str, ...]) -> list[int]:
    """Find where the gripper and a driven base are among the numbers of a state; []: not told."""
    at, found, has_gripper = 0, [], False
    for name in states:
        if name in BASES or (name in GRIPPERS and not has_gripper):
            found += range(at, at + 3)
            has_gripper = has_gripper or name in GRIPPERS
        at += layout[name].size
    return found


class Coverage:
    """Distinct cubes of two centimetres that the gripper, and an object, have been in."""

    def __init__(self) -> None:
        self._seen: dict[str, set[tuple[int, ...]]] = {"gripper": set(), "object": set()}

    def add(self, obs: Mapping[str, NDArray]) -> None:
        """Note one step of all rows; what the observations do not tell is not counted."""
        for kind, names in (("gripper", GRIPPERS), ("object", OBJECTS)):
            name = next((n for n in names if n in obs), None)
            if name is not None:
                cells = np.floor(np.asarray(obs[name])[:, :3] / VOXEL_M).astype(int)
                self._seen[kind].update(map(tuple, cells.tolist()))

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
