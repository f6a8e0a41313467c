"""The table that the Panda tasks share: RLBench's workspace, cameras and observations."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import TYPE_CHECKING, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.quick import clip
from maniple.core.seeds import Draws
from maniple.envs.meanings import RLBENCH
from maniple.envs.panda.grasp import Grasp, add_grasp
from maniple.envs.panda.load import ArmLoad
from maniple.envs.panda.placement import NEAREST_M, TABLE_M, Corners, scene_pose
from maniple.envs.task import Bounds, Task
from maniple.sim.robots.chain import BOX, ROBOT_BIT, WORLD_BIT
from maniple.sim.robots.panda import FINGER_M, FINGER_SERVO, SERVOS, TIP_M
from maniple.sim.robots.table import find_robot
from maniple.sim.rotation import mat_quat, mats_quat, quat_mat
from maniple.sim.state import State, norm
from maniple.sim.userdata import add_note

if TYPE_CHECKING:
    from maniple.envs.config import EnvConfig

BASE_M = (-0.2676, -0.0082, 0.7475)
"""Where RLBench's recorded home pose puts the arm: 3 mm from where its model's frame stands."""
WORKSPACE_LOW_M, WORKSPACE_HIGH_M = (-0.275, -0.655, 0.752), (0.775, 0.655, 1.752)
ARENA_BYTES = 8 << 20
DOWN_M = 0.2166
"""From the tip up to the wrist when the gripper points down."""

# Axes of each camera in the world, as RLBench has them: x left, y up, z forward.
FRONT = ((0, -0.4226, -0.9063), (-1, 0, 0), (0, 0.9063, -0.4226))
LEFT = ((0.1736, 0.8925, 0.4162), (0.9848, -0.1574, -0.0734), (0, 0.4226, -0.9063))
RIGHT = ((-0.1736, 0.8925, 0.4162), (0.9848, 0.1574, 0.0734), (0, 0.4226, -0.9063))
OVERHEAD = ((0, 0.9063, 0.4226), (1, 0, 0), (0, 0.4226, -0.9063))
WRIST_QUAT = (0.7064, 0.0308, 0.0308, 0.7064)
CAMERAS = {
    "front": ((1.35, 0.0, 1.58), FRONT),
    "left_shoulder": ((-0.175, 0.2, 1.98), LEFT),
    "right_shoulder": ((-0.175, -0.2, 1.98), RIGHT),
    "overhead": ((-0.175, 0.0, 2.43), OVERHEAD),
}
# MuJoCo's cameras look along -z, with x to the right.
TURNED = np.diag([-1.0, 1.0, -1.0])

_KP, _KV, _MOST = np.array(SERVOS, np.float64).T


class PandaTask(Task):
    """Do something on RLBench's table."""

    robot = find_robot("panda")
    base = BASE_M
    control = "ik"
    ee_low_m = WORKSPACE_LOW_M
    ee_high_m = WORKSPACE_HIGH_M
    timestep_s = 0.005
    substeps = 20
    ramp = (0.6, 1.0)
    episode_steps = 200
    cameras = ("front", "wrist", "left_shoulder", "right_shoulder", "overhead")
    bounds: ClassVar[dict[str, Bounds]] = {
        "joint_velocities": (-20.0, 20.0),
        "joint_positions": (-4.0, 4.0),
        "joint_forces": (-90.0, 90.0),
        "gripper_open": (0.0, 1.0),
        "gripper_pose": (-3.0, 3.0),
        "gripper_joint_positions": (-0.1, 0.1),
        "gripper_touch_forces": (-100.0, 100.0),
        "task_low_dim_state": (-10.0, 10.0),
        "variation_index": (0.0, 1000.0),
    }
    meanings: ClassVar[Mapping[str, str]] = RLBENCH
    # All of them are observed by default on CoppeliaSim too: one policy runs on both.
    proprioception = ("joint_velocities", "joint_positions", "gripper_open", "gripper_pose")
    scales: ClassVar[dict[str, float]] = {
        "reach": 0.3,
        "progress": 0.7,
        "success": 1.0,
        "time": -1.0,
    }

    yaw: tuple[float, float] = (-pi, pi)
    """How the scene may be turned (rad)."""
    corners: Corners = ((-0.1, -0.1), (0.1, 0.1))
    """Least and largest x and y of the scene, which keep it inside of the workspace."""
    reached: tuple[tuple[float, float, float], ...] = ((0.0, 0.0, DOWN_M),)
    """Points of the scene's frame that the wrist must get to."""
    nearest_m: float = NEAREST_M
    """How far joint 6 has to stay from the shoulder there."""
    bodies: tuple[str, ...] = ()
    """Bodies whose poses make up task_low_dim_state, 7 numbers each."""
    joints: tuple[str, ...] = ()
    """Joints whose positions follow them."""
    graspable: tuple[str, ...] = ()
    """Things that the gripper may hold."""
    grasp: str = "attach"
    """attach: a shut gripper holds what is between its fingers, as in RLBench; contact: friction
    does, where the expert has shown that it is enough."""

    _grasp: Grasp | None = None
    _load: ArmLoad | None = None
    _low_dim_index: tuple[State, NDArray, NDArray] | None = None

    def configure(self, config: EnvConfig) -> None:
        """Set how to grasp."""
        self.grasp = config.grasp or self.grasp
        if self.grasp == "contact":
            # At 5 ms a block squeezed by two fingers shakes itself loose.
            self.timestep_s, self.substeps = self.timestep_s / 2, 2 * self.substeps

    def spec(self) -> mujoco.MjSpec:
        """Return the empty scene, with room for the contacts of a dozen blocks."""
        spec = super().spec()
        spec.memory = ARENA_BYTES
        return spec

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the table, the cameras and what is on the table."""
        _add_table(spec)
        _add_cameras(spec)
        add_note(spec, "variation")
        self.furnish(spec)
        if self.graspable:
            add_grasp(spec, self.graspable, self.grasp == "attach")

    def furnish(self, spec: mujoco.MjSpec) -> None:
        """Add what the task is about."""
        raise NotImplementedError

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Draw a variation and where the scene stands, then what is in it."""
        drawn = rng.integers(self.variations)
        variation = drawn if self.variation is None else np.full(len(rng), self.variation)
        base = scene_pose(rng, self.yaw, self.corners, np.array(self.reached), self.nearest_m)
        return {"variation": variation.astype(np.float64)} | self.arrange(rng, base, variation)

    def arrange(self, rng: Draws, base: NDArray, variation: NDArray) -> dict[str, NDArray]:
        """Draw where things are in a scene that stands at `base` (rows, 7)."""
        raise NotImplementedError

    def after_step(self, s: State, active: NDArray[np.bool_] | None) -> None:
        """Keep the note of what is held."""
        if self.graspable:
            if self._grasp is None:
                self._grasp = Grasp(s, self.graspable, self.grasp == "attach")
            self._grasp.update(s, active)

    def points(self, name: str, size: int) -> tuple[int, ...]:
        """Add the bodies of the low-dimensional state."""
        if name == "task_low_dim_state":
            return tuple(range(0, 7 * len(self.bodies), 7))
        return super().points(name, size)

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return RLBench's low-dimensional observations."""
        q, v = s.qpos[:, :7], s.qvel[:, :7]
        fingers = s.qpos[:, 7:9]
        # What the servos exert in this very state; MuJoCo's own number is a substep old.
        servos = clip(_KP * (s.ctrl[:, :7] - q) - _KV * v, -_MOST, _MOST)
        if self._load is None or not self._load.is_of(s):
            self._load = ArmLoad(s)
        pose = np.empty((s.rows, 7))
        pose[:, :3] = s.pos("tip")
        pose[:, 3:] = mats_quat(s.mat("tip"))[:, [1, 2, 3, 0]]
        width = fingers[:, 0:1] + fingers[:, 1:2]
        return {
            "joint_velocities": v,
            "joint_positions": q,
            "joint_forces": servos + self._load.torques(),
            "gripper_open": width > 0.9 * 2 * FINGER_M,
            "gripper_pose": pose,
            "gripper_joint_positions": fingers,
            "gripper_touch_forces": _touch_forces(s, fingers),
            "task_low_dim_state": self._low_dim(s),
            "variation_index": s.note("variation")[:, None],
        }

    def aim(self, s: State) -> NDArray:
        """Where the gripper has work to do, (rows, 3)."""
        raise NotImplementedError

    def progress(self, s: State) -> NDArray:
        """How much of the task is done, (rows,), 0 to 1."""
        raise NotImplementedError

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward the tip where work is, and what is done; every step costs 1 until the end."""
        gap = norm(s.pos("tip") - self.aim(s))
        return {
            "reach": near(gap, 0.15),
            "progress": clip(self.progress(s), 0.0, 1.0),
            "success": self.success(s),
            "time": np.ones(s.rows),
        }

    def _low_dim(self, s: State) -> NDArray:
        if self._low_dim_index is None or self._low_dim_index[0] is not s:
            bodies = np.array([s.model.body(name).id for name in self.bodies], np.intp)
            joints = np.array([s.model.joint(name).qposadr[0] for name in self.joints], np.intp)
            self._low_dim_index = (s, bodies, joints)
        _, bodies, joints = self._low_dim_index
        out = np.empty((s.rows, 7 * len(bodies) + len(joints)))
        poses = out[:, : 7 * len(bodies)].reshape(s.rows, len(bodies), 7, copy=False)
        poses[..., :3] = s.bind("xpos")[:, bodies]
        quats = s.bind("xquat")[:, bodies]
        poses[..., 3:6], poses[..., 6] = quats[..., 1:], quats[..., 0]
        out[:, 7 * len(bodies) :] = s.qpos[:, joints]
        return out


def near(distance_m: NDArray, scale_m: float) -> NDArray:
    """1 at a distance of 0, a half at the scale, falling on slowly.

    Without tanh: numpy promises the same bits for any number of rows only of plain arithmetic.
    """
    part = distance_m / scale_m
    return 1.0 / (1.0 + part * part)


def _touch_forces(s: State, fingers: NDArray) -> NDArray:
    """The servos' pressure on what stops the fingers: along y of each fingertip (N)."""
    targets = s.ctrl[:, 7:9]
    pressure = np.maximum(FINGER_SERVO[0] * (fingers - targets), 0.0)
    pressure *= (targets[:, :1] < 0.0) & (fingers > 5e-4)
    out = np.zeros((s.rows, 6))
    out[:, 1] = pressure[:, 0]
    out[:, 4] = -pressure[:, 1]
    return out


def _add_table(spec: mujoco.MjSpec) -> None:
    world = spec.worldbody
    world.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[4, 4, 0.1],
        rgba=[0.62, 0.62, 0.64, 1], contype=0, conaffinity=0,
    )  # fmt: skip
    wood = [0.62, 0.47, 0.35, 1]
    table = world.add_geom(type=BOX, pos=[0.3, 0, TABLE_M - 0.02], size=[0.8, 0.55, 0.02])
    table.name, table.rgba, table.contype, table.conaffinity = "table", wood, 0, 0
    for x in (-0.45, 1.05):
        for y in (-0.5, 0.5):
            world.add_geom(
                type=BOX, pos=[x, y, 0.365], size=[0.03, 0.03, 0.365], rgba=wood,
                contype=0, conaffinity=0,
            )  # fmt: skip
    wall = world.add_geom(type=BOX, pos=[-2.51, 0, 1.5], size=[0.02, 4, 1.5])
    wall.rgba, wall.contype, wall.conaffinity = [0.86, 0.87, 0.85, 1], 0, 0
    # A plane collides at half the price of a box; it is hidden in group 3.
    top = world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, pos=[0, 0, TABLE_M], size=[2, 2, 0.1])
    top.name, top.group, top.friction = "table_top", 3, [1.0, 0.01, 0.001]
    top.contype, top.conaffinity = 0, WORLD_BIT | ROBOT_BIT


def _add_cameras(spec: mujoco.MjSpec) -> None:
    for name, (pos, axes) in CAMERAS.items():
        turn = mat_quat(np.array(axes) @ TURNED)
        spec.worldbody.add_camera(name=name, pos=pos, quat=turn / np.linalg.norm(turn), fovy=40.0)
    turn = mat_quat(quat_mat(np.array(WRIST_QUAT)) @ TURNED)
    spec.body("hand").add_camera(
        name="wrist", pos=[-0.05, 0.002, TIP_M - 0.0921], quat=turn, fovy=60.0
    )
