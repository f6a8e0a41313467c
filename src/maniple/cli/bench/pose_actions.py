"""Random actions for arms that are moved by poses: a little away from the present pose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.sim.control.control import STEP_M as LARGEST_STEP_M

STEP_M = 0.01
OPEN_SHARE = 0.95
BATCHES = 16

POSE = "gripper_pose"
ABSOLUTE_MODES = ("ik", "planning")
DELTA_MODES = ("delta_ee", "delta_position")


def takes_poses(envs: Any) -> bool:
    """Tell whether actions move the tip: uniform ones would often be invalid."""
    # Not every peer has metadata.
    return getattr(envs, "metadata", {}).get("arm_mode") in ABSOLUTE_MODES + DELTA_MODES


class PoseActions:
    """The present pose, moved by a centimetre or so, and a gripper that is mostly open."""

    def __init__(self, envs: Any, chunk: int = 1, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        lead = (envs.num_envs, chunk) if chunk > 1 else (envs.num_envs,)
        self._moves = rng.normal(0.0, STEP_M, (BATCHES, *lead, 3)).astype(np.float32)
        self._grips = (rng.random((BATCHES, *lead)) < OPEN_SHARE).astype(np.float32)
        self._is_step = envs.metadata["arm_mode"] in DELTA_MODES
        self._size = envs.single_action_space.shape[0]
        # A step turns nothing; a pose keeps the orientation that it has.
        self._pose = np.zeros((envs.num_envs, self._size - 1), np.float32)
        if self._is_step:
            self._moves = np.clip(self._moves / LARGEST_STEP_M, -1.0, 1.0)
        obs, _ = envs.reset(seed=seed)
        self.see(obs)

    def see(self, obs: Any) -> None:
        """Remember where the grippers are."""
        if not self._is_step:
            self._pose = obs[POSE]

    def actions(self, k: int) -> NDArray[np.float32]:
        """Return the k-th batch."""
        moves, grips = self._moves[k % BATCHES], self._grips[k % BATCHES]
        actions = np.empty((*grips.shape, self._size), np.float32)
        actions[..., :-1] = self._pose[:, None] if grips.ndim == 2 else self._pose
        actions[..., :3] += moves
        actions[..., -1] = grips
        return actions
