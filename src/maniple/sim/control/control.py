"""What every controller offers, what it is made of, and which there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.core.lookup import load
from maniple.core.spec import ArraySpec

if TYPE_CHECKING:
    import mujoco

    from maniple.sim.robots.chain import Vec3
    from maniple.sim.robots.robot import Robot
    from maniple.sim.simulation import Simulation

CONTROLS: dict[str, str] = {
    "raw": "maniple.sim.control.joint:RawJoint",
    "joint": "maniple.sim.control.joint:Joint",
    "delta_joint": "maniple.sim.control.joint:DeltaJoint",
    "increment": "maniple.sim.control.increment:Increment",
    "ee": "maniple.sim.control.endeffector:EndEffector",
    "ik": "maniple.sim.control.pose:Pose",
    "planning": "maniple.sim.control.planning:Planning",
    "delta_ee": "maniple.sim.control.pose:DeltaPose",
    "delta_position": "maniple.sim.control.pose:DeltaPosition",
    "joint_position": "maniple.sim.control.arm:JointPosition",
    "joint_velocity": "maniple.sim.control.arm:JointVelocity",
}

STEP_M, STEP_RAD = 0.03, 0.15
"""How far an action of size 1 goes with delta_ee and delta_position."""
DELTA_MEANING = (
    f"steps of the tip (1 is {STEP_M} m, world x y z), "
    f"rotation vector (1 is {STEP_RAD} rad, about the world's axes)"
)
POSITION_MEANING = f"steps of the tip (1 is {STEP_M} m, world x y z), orientation held"
GRIP_MEANING = "gripper (above 0.5 opens, else shuts)"


@dataclass(frozen=True)
class ControlContext:
    """What a controller is made of."""

    model: mujoco.MjModel
    robot: Robot
    base: Vec3
    """Where the robot stands (metres, world)."""
    rows: int
    threads: int
    step_s: float
    """Time of one control step."""
    ee_step_m: float
    """How far an action of size 1 moves the tip with control 'ee'."""
    low_m: Vec3
    high_m: Vec3
    """Box that targets of the tip stay in (metres, world)."""


class Drive(Protocol):
    """The servos of all rows, as a controller uses them."""

    ctrl: NDArray
    """Present servo targets, (rows, nu)."""
    sim: Simulation

    def step_to(self, targets: NDArray, active: NDArray[np.bool_] | None) -> None:
        """Give the active rows (None: all) new servo targets, and take one control step."""
        ...

    def follow(self, paths: list[NDArray], period_s: float) -> None:
        """Give each row its servo targets (steps, nu) one after the other, until it succeeds."""
        ...


class Control(Protocol):
    """Carries out actions. It is made as `kind(context)`."""

    action: ArraySpec
    invalid: NDArray[np.bool_] | None
    """Rows whose last action could not be carried out; None: every action can be."""

    def execute(self, actions: NDArray, active: NDArray[np.bool_] | None, drive: Drive) -> None:
        """Let the active rows (None: all) carry out one action each."""
        ...


class StepControl:
    """A controller whose actions take one control step each."""

    invalid: NDArray[np.bool_] | None = None

    def command(self, actions: NDArray, ctrl: NDArray) -> NDArray:
        """Return the next servo targets, (rows, nu), from the actions and the present ones."""
        raise NotImplementedError

    def execute(self, actions: NDArray, active: NDArray[np.bool_] | None, drive: Drive) -> None:
        """Command the servos, then step."""
        drive.step_to(self.command(actions, drive.ctrl), active)


def make_control(name: str, context: ControlContext) -> Any:
    """Make a controller by its name in CONTROLS."""
    return load(CONTROLS[name])(context)


def servo_range(model: mujoco.MjModel) -> tuple[NDArray, NDArray]:
    """Lowest and highest target of each servo; unlimited ones are infinite."""
    limited = np.asarray(model.actuator_ctrllimited, bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -np.inf)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], np.inf)
    return low, high


def actuators(model: mujoco.MjModel, joints: tuple[str, ...]) -> NDArray[np.intp]:
    """Numbers of the actuators of joints."""
    return np.array([model.actuator(name).id for name in joints], np.intp)
