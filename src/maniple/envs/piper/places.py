"""Where a Piper works: on a desk, from a dog's back, from a wheeled base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.envs.config import EnvConfig
from maniple.envs.piper.things import add_board, add_floor, add_table_top
from maniple.envs.task import Bounds, Task
from maniple.sim.robots.go2_piper import GO2_PIPER, MOUNT, STAND_M, go2_piper
from maniple.sim.robots.mobile_piper import (
    BASE,
    LEFT,
    MOBILE_PIPER,
    MOUNTS,
    RIGHT,
    mobile_piper,
)
from maniple.sim.robots.piper import ARM, PIPER
from maniple.sim.scene import add_camera, add_desk
from maniple.sim.state import State

ARM_BOUNDS: dict[str, Bounds] = {
    "joint_pos": (-3.2, 3.2),
    "joint_vel": (-20.0, 20.0),
    "tip_pos": (-3.0, 3.0),
}
POSE_BOUNDS: Bounds = (-3.0, 3.0)
ARM_MEANINGS: Mapping[str, str] = {
    "joint_pos": "positions of the six joints (rad) and the gripper (m; 0 shut, 0.035 open)",
    "joint_vel": "velocities of the six joints (rad/s) and the gripper (m/s)",
    "tip_pos": "tip: position (m); world",
}
PART_BOUNDS: dict[str, Bounds] = {"right_pos": (-3.2, 3.2), "base_pose": (-100.0, 100.0)}
PART_MEANINGS: Mapping[str, str] = {
    "right_pos": "positions of the right arm's six joints (rad) and its gripper (m)",
    "base_pose": "base from where it began: x, y (m), yaw (rad); world",
}
"""What is observed besides where a second arm or the base is driven."""
FOV_DEG = 65.0
OVERVIEW = "overview"
"""Camera that sees the floor over which a base is driven; the others look at the table."""


class PiperTask(Task):
    """Do something with a Piper; a subclass says where it stands."""

    robot = PIPER
    surface_m: float = 0.0
    """Height of what things lie on (metres, world)."""
    further_m: float = 0.0
    """How much further away things lie than on the desk: the dog's head is in the way."""
    shoulder: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where the arm's own base is (metres, world)."""
    front_scale: float = 1.0
    """How much further away the front camera stands where there is more to see."""
    ee_step_m = 0.02
    timestep_s = 0.004
    substeps = 10
    bounds: ClassVar[dict[str, Bounds]] = ARM_BOUNDS
    meanings: ClassVar[Mapping[str, str]] = ARM_MEANINGS
    proprioception = tuple(ARM_BOUNDS)
    cameras = ("front", "wrist", "overhead")
    _has_right = _has_base = False

    def __init__(self) -> None:
        x, y, _ = self.shoulder
        self.ee_low_m = (x + 0.15, y - 0.35, self.surface_m + 0.006)
        self.ee_high_m = (x + 0.58, y + 0.35, self.surface_m + 0.45)

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the desk and three cameras."""
        add_desk(spec, half=0.9)
        add_board(spec, (0.36, -0.02, 0.0016))
        self.add_cameras(spec)

    def add_cameras(self, spec: mujoco.MjSpec) -> None:
        """Look from the front, from the hand and from above."""
        x, y, _ = self.shoulder
        middle = np.array([x + 0.30, y, self.surface_m + 0.08])
        way = np.array([0.65, -0.42, 0.48]) * self.front_scale
        add_camera(spec, "front", middle + way, middle, 42.0)
        add_wrist_camera(spec)
        add_camera(spec, "overhead", middle + [0.0, 0.0, 0.95], middle, 45.0)
        if self._has_base:
            eye, floor = np.array([-0.45, -2.0, 1.9]), np.array([-0.45, 0.0, self.surface_m / 2])
            add_camera(spec, OVERVIEW, eye, floor, 45.0)

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return the arm's joints and its fingertip; tasks add what they are about."""
        arm = {"joint_pos": arm_pos(s), "joint_vel": arm_vel(s), "tip_pos": s.pos("tip")}
        return arm | self.observe_parts(s)

    def choose(self, arms: int, base: bool) -> None:
        """Observe what is driven besides the left arm, too."""
        self._has_right, self._has_base = arms == 2, base
        chosen = [n for n, there in (("right_pos", arms == 2), ("base_pose", base)) if there]
        self.bounds = {**self.bounds, **{name: PART_BOUNDS[name] for name in chosen}}
        self.meanings = {**self.meanings, **{name: PART_MEANINGS[name] for name in chosen}}
        self.proprioception = (*self.proprioception, *chosen)
        if self.observations is not None:
            self.observations = (*self.observations, *chosen)
        if base:
            self.cameras = (*self.cameras, OVERVIEW)

    def observe_parts(self, s: State) -> dict[str, NDArray]:
        """Return the right arm's joints and where the base is, where these are driven."""
        found: dict[str, NDArray] = {}
        if self._has_right:
            found["right_pos"] = arm_pos(s, RIGHT)
        if self._has_base:
            start = int(s.model.joint(BASE[0]).qposadr[0])
            found["base_pose"] = s.qpos[:, start : start + 3]
        return found

    def within_reach(self, xy: NDArray) -> NDArray:
        """Turn places relative to the arm's base into the world's, at the surface."""
        x, y, _ = self.shoulder
        height = np.full((len(xy), 1), self.surface_m)
        return np.concatenate([xy + [x + self.further_m, y], height], axis=1)


class OnDog(PiperTask):
    """From a dog's back, on a low table."""

    robot = GO2_PIPER
    choices = ("base",)
    surface_m = 0.30
    further_m = 0.06
    front_scale = 1.4
    shoulder = (MOUNT[0], 0.0, STAND_M + MOUNT[2])

    def configure(self, config: EnvConfig) -> None:
        """Let the base be driven where that is asked for."""
        if config.base:
            self.robot = go2_piper(base=True)
            self.control = "increment"
            self.choose(1, True)

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add a floor, a low table and three cameras."""
        add_floor(spec)
        add_table_top(spec, (0.67, 0.0, self.surface_m - 0.02), (0.30, 0.40, 0.02))
        self.add_cameras(spec)


class OnWheels(PiperTask):
    """From a wheeled base, on a table."""

    robot = MOBILE_PIPER
    choices = ("arms", "base")
    base = (0.15, 0.0, -0.133)
    surface_m = 0.741
    front_scale = 1.6
    shoulder = tuple(np.add((0.15, 0.0, -0.133), MOUNTS[LEFT]).tolist())

    def configure(self, config: EnvConfig) -> None:
        """Let both arms and the base be driven where that is asked for."""
        arms, base = config.arms or 1, bool(config.base)
        if (arms, base) != (1, False):
            self.robot = mobile_piper(arms, base)
            self.control = "increment"
            self.choose(arms, base)

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add a floor, a table and the cameras; '3rd' looks over the table from the mast."""
        add_floor(spec)
        add_table_top(spec, (0.7, 0.0, 0.73), (0.3, 0.6, 0.011))
        self.add_cameras(spec)
        eye = np.array([0.15 + 0.1612, 0.0, 1.4142 - 0.133])
        add_camera(spec, "3rd", eye, eye + [0.766, 0.0, -0.643], FOV_DEG)


def add_wrist_camera(spec: mujoco.MjSpec, prefix: str = "") -> None:
    """Add the camera above the hand, which looks at the fingertips."""
    # In the frame of link6, whose axes are the base's at q = 0: behind, above, ahead.
    eye = np.array([0.030, 0.0, 0.072])
    tip = np.array([0.1830 - 0.05614, 0.0, 0.2243 - 0.21319])
    add_camera(
        spec, f"{prefix}wrist", eye, tip, FOV_DEG, body=f"{prefix}gripper_base", up=(0.0, 0.0, 1.0)
    )


def arm_pos(s: State, prefix: str = "") -> NDArray:
    """Positions of the six joints and the gripper, (rows, 7)."""
    start = int(s.model.joint(prefix + ARM[0]).qposadr[0])
    return s.qpos[:, start : start + 7]


def arm_vel(s: State, prefix: str = "") -> NDArray:
    """Velocities of the six joints and the gripper, (rows, 7)."""
    start = int(s.model.joint(prefix + ARM[0]).dofadr[0])
    return s.qvel[:, start : start + 7]
