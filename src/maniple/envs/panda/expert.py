"""Scripted experts: move the gripper through poses that are computed from observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.envs.panda.table import PandaTask
from maniple.sim.control.control import STEP_M, STEP_RAD
from maniple.sim.rotation import (
    quat_conj,
    quat_mul,
    quat_rotate,
    quat_yaw,
    rotation_vector,
    turn_angle,
    turn_part,
    yaw_quat,
)

Obs = dict[str, NDArray]
Goal = tuple[NDArray, NDArray]
"""Tip position (rows, 3) and orientation (rows, 4), w x y z."""

POINTING_DOWN = np.array([0.0, 0.0, 1.0, 0.0])
OPEN, SHUT = 1.0, 0.0
POSE, DELTA_POSE, DELTA_POSITION = CONTROLS = ("ik", "delta_ee", "delta_position")
"""Ways to act that the experts know."""
LOWEST_M = 0.7625


class Observed:
    """Observations by name: what task_low_dim_state says of each body and joint."""

    def __init__(self, obs: Obs, task: type[PandaTask]) -> None:
        self._numbers = np.asarray(obs["task_low_dim_state"], np.float64)
        self._bodies = {name: 7 * k for k, name in enumerate(task.bodies)}
        self._joints = {name: 7 * len(task.bodies) + k for k, name in enumerate(task.joints)}
        self.variation = np.asarray(obs["variation_index"])[:, 0].astype(np.int64)
        pose = np.asarray(obs["gripper_pose"], np.float64)
        self.tip, self.turn = pose[:, :3], pose[:, [6, 3, 4, 5]]

    def pos(self, body: str) -> NDArray:
        """Position of a body, (rows, 3)."""
        at = self._bodies[body]
        return self._numbers[:, at : at + 3]

    def quat(self, body: str) -> NDArray:
        """Orientation of a body, (rows, 4), w x y z."""
        at = self._bodies[body]
        return self._numbers[:, [at + 6, at + 3, at + 4, at + 5]]

    def joint(self, name: str) -> NDArray:
        """Position of a joint, (rows,)."""
        return self._numbers[:, self._joints[name]]

    def point(self, body: str, offset: Sequence[float] | NDArray) -> NDArray:
        """A point of a body's frame in the world, (rows, 3)."""
        return self.pos(body) + quat_rotate(self.quat(body), np.asarray(offset, np.float64))

    def choose(self, index: NDArray, options: Sequence[NDArray]) -> NDArray:
        """Per row, one of several arrays."""
        return np.stack(options)[index, np.arange(len(self.tip))]


class Waypoint(NamedTuple):
    """A pose to get to, and what the gripper does on the way and there."""

    goal: Callable[[Observed], Goal]
    """Worked out when the waypoint begins, and kept."""
    grip: float
    hold: int = 0
    """Steps to stay."""
    tolerance_m: float = 0.006
    step_m: float = 0.045
    """How far the commanded pose moves in a step."""
    patience: int = 45
    """Steps after which it goes on, wherever it is."""
    step_rad: float = 0.3


class PandaExpert:
    """Moves every row through a task's waypoints, each at its own pace; drives any engine."""

    def __init__(
        self,
        task: type[PandaTask],
        waypoints: Sequence[Waypoint],
        num_envs: int,
        control: str = POSE,
    ) -> None:
        self._task = task
        self._control = control
        self._script = waypoints
        self._waypoints = [_slowed(w) for w in waypoints] if control != POSE else waypoints
        self._at = np.zeros(num_envs, np.int64)
        self._steps = np.zeros(num_envs, np.int64)
        self._held = np.zeros(num_envs, np.int64)
        self._goal_pos, self._goal_turn = np.zeros((num_envs, 3)), np.zeros((num_envs, 4))
        self._pos, self._turn = np.zeros((num_envs, 3)), np.zeros((num_envs, 4))
        self._is_new = np.ones(num_envs, np.bool_)
        self._begins = np.full(num_envs, 2)

    def acting_by(self, control: str) -> PandaExpert:
        """Return the same expert, speaking another control."""
        if control not in CONTROLS:
            raise BadConfig(
                f"The expert of {self._task.__name__} acts by {', '.join(CONTROLS)}, not by "
                f"{control!r}."
            )
        return PandaExpert(self._task, self._script, len(self._at), control)

    def act(self, obs: Obs) -> NDArray[np.float32]:
        """Return the next action of every row."""
        observed = Observed(obs, self._task)
        self._latch(observed)
        pos, turn = self._pos, self._turn
        each = np.array([w[1:] for w in self._waypoints])[self._at]
        grip, hold, tolerance, step_m, patience, step_rad = each.T
        way = self._goal_pos - self._pos
        far = np.sqrt((way**2).sum(1))
        angle = turn_angle(self._turn, self._goal_turn)[:, 0]
        part = np.minimum(step_m / np.maximum(far, step_m), step_rad / np.maximum(angle, step_rad))
        self._pos = self._pos + way * part[:, None]
        self._turn = turn_part(self._turn, self._goal_turn, part[:, None])
        gap = np.sqrt(((self._goal_pos - observed.tip) ** 2).sum(1))
        cosine = np.abs((self._goal_turn * observed.turn).sum(1))
        is_there = (gap < tolerance) & (cosine > np.cos(0.04))
        self._steps += 1
        self._held = np.where(is_there, self._held + 1, 0)
        goes_on = (self._held > hold) | (self._steps > patience)
        goes_on &= self._at < len(self._waypoints) - 1
        self._at += goes_on
        self._steps[goes_on] = self._held[goes_on] = 0
        self._is_new |= goes_on
        if self._control == POSE:
            parts = [self._pos, self._turn[:, [1, 2, 3, 0]], grip[:, None]]
        else:
            parts = [*self._steps_from(pos, turn), 2.0 * grip[:, None] - 1.0]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _steps_from(self, pos: NDArray, turn: NDArray) -> list[NDArray]:
        """The way from an earlier commanded pose to the present one, as increments."""
        move = np.clip((self._pos - pos) / STEP_M, -1.0, 1.0)
        if self._control == DELTA_POSITION:
            return [move]
        rotation = rotation_vector(quat_mul(self._turn, quat_conj(turn)))
        return [move, np.clip(rotation / STEP_RAD, -1.0, 1.0)]

    def reset(self, rows: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Start over in rows that begin an episode."""
        self._at[rows] = self._steps[rows] = self._held[rows] = 0
        self._is_new[rows] = True
        self._begins[rows] = 2

    def _latch(self, observed: Observed) -> None:
        """Work out the goals of waypoints that begin now.

        Twice at an episode's beginning: where rows are reset in the next step, what is seen first
        is still the end of the episode before.
        """
        begins = self._begins > 0
        self._pos = np.where(begins[:, None], observed.tip, self._pos)
        self._turn = np.where(begins[:, None], observed.turn, self._turn)
        self._at[begins] = self._steps[begins] = self._held[begins] = 0
        self._is_new |= begins
        self._begins[begins] -= 1
        if not self._is_new.any():
            return
        for k in np.unique(self._at[self._is_new]):
            rows = self._is_new & (self._at == k)
            pos, turn = self._waypoints[k].goal(observed)
            if self._control == DELTA_POSITION:
                turn = self._turn
            self._goal_pos[rows], self._goal_turn[rows] = pos[rows], turn[rows]
        self._is_new[:] = False


def _slowed(waypoint: Waypoint) -> Waypoint:
    """Keep to steps that increments can say."""
    step_m, step_rad = min(waypoint.step_m, STEP_M), min(waypoint.step_rad, STEP_RAD)
    return waypoint._replace(step_m=step_m, step_rad=step_rad)


def script(task: type[PandaTask], *waypoints: Waypoint | list[Waypoint]):
    """Return a function that makes the expert of a task for a number of environments."""
    flat: list[Waypoint] = []
    for entry in waypoints:
        flat += entry if isinstance(entry, list) else [entry]
    return lambda num_envs: PandaExpert(task, flat, num_envs)


def down(yaw_rad: NDArray, fold_rad: float = np.pi) -> NDArray:
    """Orientations that point down, turned like an object that looks the same every `fold_rad`."""
    folded = (yaw_rad + fold_rad / 2) % fold_rad - fold_rad / 2
    return quat_mul(yaw_quat(folded), POINTING_DOWN)


def over(
    body: str,
    offset: Sequence[float] = (0.0, 0.0, 0.0),
    yaw_rad: float = 0.0,
    fold_rad: float = np.pi / 2,
) -> Callable[[Observed], Goal]:
    """Goal at a point of a body, pointing down, the fingers turned with the body."""

    def goal(observed: Observed) -> Goal:
        pos = observed.point(body, offset)
        # The fingers end 9 mm below the tip: they must not press on the table.
        pos[:, 2] = np.maximum(pos[:, 2], LOWEST_M)
        return pos, down(quat_yaw(observed.quat(body)) + yaw_rad, fold_rad)

    return goal


def facing(
    body: str, offset: Sequence[float], quat_wxyz: Sequence[float]
) -> Callable[[Observed], Goal]:
    """Goal at a point of a body, oriented in the body's frame."""

    def goal(observed: Observed) -> Goal:
        return observed.point(body, offset), quat_mul(observed.quat(body), np.array(quat_wxyz))

    return goal


def stay(observed: Observed) -> Goal:
    """Goal where the tip is."""
    return observed.tip.copy(), observed.turn.copy()


def shifted(by_m: Sequence[float]) -> Callable[[Observed], Goal]:
    """Goal at a distance from where the tip is, turned as it is."""
    return lambda observed: (observed.tip + np.asarray(by_m), observed.turn.copy())


def close(hold: int = 4) -> Waypoint:
    """Shut the gripper and wait for it."""
    return Waypoint(stay, SHUT, hold, 0.03)


def release(hold: int = 3) -> Waypoint:
    """Open the gripper and wait for it."""
    return Waypoint(stay, OPEN, hold, 0.03)


def pick(goal: Callable[[Observed], Goal], above_m: float = 0.10, lift_m: float = 0.15) -> list:
    """Come from above, shut, raise."""
    return [
        Waypoint(raised(goal, above_m), OPEN, tolerance_m=0.012),
        Waypoint(goal, OPEN, 1, 0.004, 0.03),
        close(),
        Waypoint(shifted((0, 0, lift_m)), SHUT, tolerance_m=0.02),
    ]


def raised(goal: Callable[[Observed], Goal], up_m: float) -> Callable[[Observed], Goal]:
    """The same goal, higher."""

    def higher(observed: Observed) -> Goal:
        pos, turn = goal(observed)
        return pos + [0.0, 0.0, up_m], turn

    return higher


def swing(
    body: str,
    hinge: Sequence[float],
    radius_m: float,
    angles_rad: Sequence[float],
    grip: float = SHUT,
    lead_rad: float = 0.0,
) -> list[Waypoint]:
    """Follow the edge of a lid that turns about x of a body: 0 is along +y, a quarter turn up.

    The gripper keeps pointing from the edge to the hinge, ahead of that by `lead_rad`.
    """
    waypoints = []
    for angle in angles_rad:
        y, z = np.cos(angle) * radius_m, np.sin(angle) * radius_m
        lean = (angle + lead_rad - np.pi / 2) / 2
        turn = quat_mul(np.array([np.cos(lean), np.sin(lean), 0.0, 0.0]), POINTING_DOWN)
        offset = (hinge[0], hinge[1] + y, hinge[2] + z)
        waypoints.append(
            Waypoint(facing(body, offset, turn.tolist()), grip, tolerance_m=0.02, step_m=0.035)
        )
    return waypoints
