"""HandOver: one arm takes a stick and gives it to the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.seeds import Draws
from maniple.envs.closeness import near
from maniple.envs.config import EnvConfig
from maniple.envs.piper.places import POSE_BOUNDS, OnWheels, add_wrist_camera, arm_pos
from maniple.envs.task import Bounds
from maniple.sim.robots.mobile_piper import LEFT, RIGHT, mobile_piper
from maniple.sim.rotation import yaw_quat
from maniple.sim.scene import RED, add_box
from maniple.sim.state import State

HALF: tuple[float, float, float] = (0.012, 0.11, 0.012)
LOW, HIGH = np.array([0.55, 0.16]), np.array([0.62, 0.24])
GRASP_M, FREE_M, RAISED_M = 0.035, 0.08, 0.05


class HandOver(OnWheels):
    """Hand the stick from the left arm to the right one."""

    robot = mobile_piper(arms=2)
    control = "increment"
    episode_steps = 220
    bounds: ClassVar[dict[str, Bounds]] = {
        "left_pos": (-3.2, 3.2),
        "right_pos": (-3.2, 3.2),
        "left_tip": POSE_BOUNDS,
        "right_tip": POSE_BOUNDS,
        "stick_pose": POSE_BOUNDS,
    }
    meanings: ClassVar[Mapping[str, str]] = {
        "left_pos": "positions of the left arm's six joints (rad) and its gripper (m)",
        "right_pos": "positions of the right arm's six joints (rad) and its gripper (m)",
        "left_tip": "left tip: position (m); world",
        "right_tip": "right tip: position (m); world",
        "stick_pose": "position (m), quaternion wxyz; world",
    }
    proprioception = ("left_pos", "right_pos", "left_tip", "right_tip")
    scales: ClassVar[dict[str, float]] = {
        "touch": 0.3, "lift": 0.4, "meet": 0.5, "success": 2.0, "time": -1.0,
    }  # fmt: skip
    cameras = ("front", "wrist", "right_wrist", "overhead", "3rd")

    def configure(self, config: EnvConfig) -> None:
        """Drive both arms, and the base where that is asked for."""
        if config.arms not in (None, 2):
            raise BadConfig("HandOver needs both arms: leave arms out, or set it to 2.")
        if config.base:
            self.robot = mobile_piper(arms=2, base=True)
            self.choose(1, True)  # Its own observations have both arms already.

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the stick, and a camera at the right hand."""
        super().scene(spec)
        add_wrist_camera(spec, RIGHT)
        at = (0.58, 0.2, self.surface_m + HALF[2])
        add_box(spec, "stick", HALF, RED, at, 0.06, friction=1.5)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Lay the stick before the left arm, about across."""
        xy = rng.uniform(LOW, HIGH)
        height = np.full((len(rng), 1), self.surface_m + HALF[2])
        yaw = rng.uniform(-0.12, 0.12)
        return {"stick": np.concatenate([xy, height, yaw_quat(yaw)], axis=1)}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return both arms and the stick."""
        return {
            "left_pos": arm_pos(s, LEFT),
            "right_pos": arm_pos(s, RIGHT),
            "left_tip": s.pos("tip"),
            "right_tip": s.pos("right_tip"),
            "stick_pose": np.concatenate([s.pos("stick"), s.quat("stick")], axis=1),
            **self.observe_parts(s),
        }

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward the left hand at the stick, the stick in the air, and the right hand at it."""
        left, right = self._gaps(s)
        high = np.clip((s.pos("stick")[:, 2] - self.surface_m - HALF[2]) / 0.15, 0.0, 1.0)
        return {
            "touch": near(np.minimum(left, right), 0.10),
            "lift": high,
            "meet": near(right, 0.15) * high,
            "success": self.success(s),
            "time": np.ones(s.rows),
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """In the air, in the right hand, and not in the left."""
        left, right = self._gaps(s)
        is_raised = s.pos("stick")[:, 2] > self.surface_m + HALF[2] + RAISED_M
        is_shut = arm_pos(s, RIGHT)[:, 6] < 0.02
        return is_raised & is_shut & (right < GRASP_M) & (left > FREE_M)

    def _gaps(self, s: State) -> tuple[NDArray, NDArray]:
        """How far each tip is from the stick's axis."""
        along = s.mat("stick")[:, :, 1]
        gaps = []
        for tip in ("tip", "right_tip"):
            way = s.pos(tip) - s.pos("stick")
            at = np.clip((way * along).sum(1), -HALF[1], HALF[1])[:, None]
            gaps.append(np.sqrt(((way - at * along) ** 2).sum(1)))
        return gaps[0], gaps[1]
