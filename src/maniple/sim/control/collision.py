"""Check whether an arm would collide, in the present scene."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.sim.robots.robot import Robot

DEEP_M = -0.002
"""A contact shallower than this is a touch, not a collision."""


class CollisionCheck:
    """The state of one row, in which the arm is moved and everything else is fixed."""

    def __init__(self, model: mujoco.MjModel, robot: Robot) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        self._arm = np.array([model.joint(name).qposadr[0] for name in robot.joints])
        self._is_robot = _robot_bodies(model, robot)
        self._allowed: set[int] = set()

    def set_scene(self, data: mujoco.MjData, ends: list[NDArray], held: int) -> None:
        """Copy a state. What the arm touches at both ends of its path it may touch in between.

        Args:
            data: The row's present state.
            ends: Joint positions where it begins and where it ends.
            held: Number of the body in the gripper, or -1: it moves along, so it is ignored.
        """
        self._data.qpos[:] = data.qpos
        self._data.mocap_pos[:], self._data.mocap_quat[:] = data.mocap_pos, data.mocap_quat
        self._allowed = {held} if held >= 0 else set()
        for q in ends:
            self._allowed |= self._touched(q)

    def is_free(self, q: NDArray) -> bool:
        """Whether joint positions (joints,) bring the arm into nothing new."""
        return self._touched(q) <= self._allowed

    def _touched(self, q: NDArray) -> set[int]:
        """Bodies other than its own that the robot penetrates."""
        model, data = self._model, self._data
        data.qpos[self._arm] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_collision(model, data)
        if data.ncon == 0:
            return set()
        bodies = model.geom_bodyid[data.contact.geom[data.contact.dist < DEEP_M]]
        mine = self._is_robot[bodies]
        touching = bodies[mine[:, 0] != mine[:, 1]]
        return set(touching[~self._is_robot[touching]].tolist())


def _robot_bodies(model: mujoco.MjModel, robot: Robot) -> NDArray[np.bool_]:
    """Flag the bodies that hang on the robot's first joint."""
    root = int(model.body_rootid[int(model.joint(robot.joints[0]).bodyid[0])])
    return np.asarray(model.body_rootid) == root
