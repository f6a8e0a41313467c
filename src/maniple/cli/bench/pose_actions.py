"""Random actions for arms that take absolute poses: a little away from the present pose."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP_M = 0.01
OPEN_SHARE = 0.95
BATCHES = 16

POSE = "gripper_pose"


def takes_poses(envs: Any) -> bool:
    """Tell whether actions are [x y z qx qy qz qw gripper]: uniform ones would all be invalid."""
    # Not every peer has metadata.
    return getattr(envs, "metadata", {}).get("arm_mode") in ("ik", "planning", "delta_ee")


class PoseActions:
    """The present pose, moved by a centimetre or so, and a gripper that is mostly open."""

    def __init__(self, envs: Any, chunk: int = 1, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        lead = (envs.num_envs, chunk) if chunk > 1 else (envs.num_envs,)
        self._moves = rng.normal(0.0, STEP_M, (BATCHES, *lead, 3)).astype(np.float32)
        self._grips = (rng.random((BATCHES, *lead)) < OPEN_SHARE).astype(np.float32)
        self._is_step = envs.metadata["arm_mode"] == "delta_ee"
        self._pose = np.zeros((envs.num_envs, 7), np.float32)
        self._pose[:, 6] = 1.0
        obs, _ = envs.reset(seed=seed)
        self.see(obs)

    def see(self, obs: Any) -> None:
        """Remember where the grippers are."""
        if not self._is_step:
            self._pose = obs[POSE]

    def actions(self, k: int) -> NDArray[np.float32]:
        """Return the k-th batch."""
        moves, grips = self._moves[k % BATCHES], self._grips[k % BATCHES]
        actions = np.empty((*grips.shape, 8), np.float32)
        actions[..., :7] = self._pose[:, None] if grips.ndim == 2 else self._pose
        actions[..., :3] += moves
        actions[..., 7] = grips
        return actions
