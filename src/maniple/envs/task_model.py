"""Compose the model of a task: its scene, the robot that was chosen, what perturbations add."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco

from maniple.core.errors import BadConfig
from maniple.envs.config import EnvConfig
from maniple.envs.signals import add_late_actions
from maniple.envs.task import Task
from maniple.sim.distractors import add_distractors
from maniple.sim.robots.robot import Robot
from maniple.sim.robots.table import find_robot
from maniple.sim.scene import compile_model


def configure(task: Task, config: EnvConfig) -> None:
    """Give a task its robot and the settings that concern it; refuse those that do not."""
    for name in ("arms", "base"):
        if getattr(config, name) not in (None, False) and name not in task.choices:
            raise BadConfig(f"{type(task).__name__} has no {name} to choose: leave {name} out.")
    task.robot = choose_robot(task, config.robot)
    task.configure(config)


def proprioception(task: type[Task], config: EnvConfig) -> tuple[str, ...]:
    """Names of what the robot knows of itself, with the arms and the base that are driven."""
    if not (config.arms or config.base):
        return tuple(getattr(task, "proprioception", ()))
    made = task()
    configure(made, config)
    return tuple(made.proprioception)


def choose_robot(task: Task, name: str | None) -> Robot:
    """Return the robot that a config names, where the task can take it, else the task's own."""
    if name is None or name == task.robot.name:
        return task.robot
    robot = find_robot(name)
    if task.robots is not None and robot.name not in task.robots:
        raise BadConfig(
            f"{type(task).__name__} cannot take the robot {robot.name!r}, only: "
            f"{', '.join((task.robot.name, *task.robots))}."
        )
    return robot


def build_model(task: Task, perturb: Mapping[str, float] | None = None) -> mujoco.MjModel:
    """Compose and compile a task's scene, with what perturbations need besides."""
    spec = task.spec()
    task.robot.add(spec, task.base)
    task.scene(spec)
    how = perturb or {}
    add_distractors(spec, int(how.get("distractors", 0)))
    if delay := int(how.get("action_delay", 0)):
        add_late_actions(spec, delay)
    if not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in spec.joints):
        # Islands pay where things lie apart. A robot among furniture is one problem: finding that
        # out anew takes a twentieth of every step.
        spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    return compile_model(spec)
