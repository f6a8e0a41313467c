"""Choose how a task's actions move its robot."""

from __future__ import annotations

import mujoco

from maniple.envs.config import EnvConfig
from maniple.envs.task import Task
from maniple.sim.control.arm import JointPosition, JointVelocity
from maniple.sim.control.control import Control
from maniple.sim.control.endeffector import EndEffector
from maniple.sim.control.joint import DeltaJoint, Joint, RawJoint
from maniple.sim.control.planning import Planning
from maniple.sim.control.pose import DeltaPose, Pose


def choose_control(
    task: Task, config: EnvConfig, model: mujoco.MjModel, rows: int, threads: int
) -> Control:
    """Make the controller that the config names, else the task's own."""
    kind = config.control or task.control
    if kind == "raw":
        return RawJoint(model)
    if kind == "joint":
        return Joint(model)
    if kind == "delta_joint":
        return DeltaJoint(model)
    if kind == "joint_position":
        return JointPosition(model, task.robot)
    if kind == "joint_velocity":
        return JointVelocity(model, task.robot, step_s=model.opt.timestep * task.substeps)
    if kind == "planning":
        box = task.ee_low_m, task.ee_high_m
        return Planning(model, task.robot, task.base, rows, *box)
    if kind in ("ik", "delta_ee"):
        make = Pose if kind == "ik" else DeltaPose
        box = task.ee_low_m, task.ee_high_m
        return make(model, task.robot, task.base, rows, threads, *box)
    return EndEffector(
        model, task.robot, task.base, rows, threads, task.ee_step_m, task.ee_low_m, task.ee_high_m
    )
