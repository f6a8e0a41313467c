"""Scripted experts of the Piper's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from maniple.envs.expert import Obs, Waypoint, WaypointExpert
from maniple.envs.piper.fruit_in_bowl import (
    RADII,
    AppleInBowl,
    BananaInBowl,
    DogAppleInBowl,
    DogBananaInBowl,
    FruitInBowl,
    WheelsAppleInBowl,
    WheelsBananaInBowl,
)
from maniple.envs.piper.hand_over import HandOver
from maniple.envs.piper.mobile_robot import PiperMobileRobot
from maniple.envs.piper.places import PiperTask
from maniple.envs.piper.things import BANANA_R_M, BOWL_HIGH_M
from maniple.sim.control.ik import Kinematics
from maniple.sim.robots.chain import Vec3
from maniple.sim.robots.mobile_piper import MOUNTS, RIGHT
from maniple.sim.robots.piper import ARM, PIPER, STEPS
from maniple.sim.rotation import euler_mat

OPEN, SHUT = 1.0, -1.0
LOWEST_M = 0.014
"""How far the tip stays above the surface: the fingers reach a little further."""
DOWN_RAD, FLAT_RAD = 1.22, 0.75
"""How far the hand is turned down near the arm, and where it must stretch."""

Goal = Callable[[Obs], NDArray]


def _up_to(height_m: float) -> Goal:
    def goal(obs: Obs) -> NDArray:
        place = obs["tip_pos"].copy()
        place[:, 2] = height_m
        return place

    return goal


def reach(num_envs: int) -> WaypointExpert:
    """Go straight to the ball."""
    step_m = PiperTask.ee_step_m
    return WaypointExpert([Waypoint(lambda o: o["target_pos"], OPEN)], num_envs, step_m)


def _fruit_in_bowl(task: type[FruitInBowl]) -> Callable[[int], WaypointExpert]:
    """Grasp from above, carry over the bowl, let go, retreat."""
    surface_m, radius_m = task.surface_m, RADII[task.fruit]

    def fruit(above_m: float) -> Goal:
        def goal(obs: Obs) -> NDArray:
            place = obs["fruit_pose"][:, :3].copy()
            place[:, 2] = surface_m + max(radius_m, LOWEST_M) + above_m
            return place

        return goal

    def over_bowl(above_m: float) -> Goal:
        def goal(obs: Obs) -> NDArray:
            # The fruit should be there, wherever the fingers hold it.
            wanted = obs["bowl_pos"] + [0, 0, BOWL_HIGH_M + above_m]
            shift = obs["tip_pos"] - obs["fruit_pose"][:, :3]
            return wanted + np.clip(shift, -0.05, 0.05)

        return goal

    waypoints = [
        Waypoint(fruit(0.08), OPEN, 0.012),
        Waypoint(fruit(0.0), OPEN, 0.006, 2),
        Waypoint(lambda o: o["tip_pos"], SHUT, 1.0, 10),
        Waypoint(_up_to(surface_m + 0.18), SHUT, 0.02),
        Waypoint(over_bowl(0.09), SHUT, 0.015),
        Waypoint(over_bowl(0.03), SHUT, 0.012, 2),
        Waypoint(lambda o: o["tip_pos"], OPEN, 1.0, 8),
        Waypoint(_up_to(surface_m + 0.25), OPEN),
    ]
    return lambda num_envs: WaypointExpert(waypoints, num_envs, PiperTask.ee_step_m)


apple_in_bowl = _fruit_in_bowl(AppleInBowl)
banana_in_bowl = _fruit_in_bowl(BananaInBowl)
dog_apple_in_bowl = _fruit_in_bowl(DogAppleInBowl)
dog_banana_in_bowl = _fruit_in_bowl(DogBananaInBowl)
wheels_apple_in_bowl = _fruit_in_bowl(WheelsAppleInBowl)
wheels_banana_in_bowl = _fruit_in_bowl(WheelsBananaInBowl)


def pick_banana(num_envs: int) -> IncrementExpert:
    """Reach over the table, grasp, and raise the banana."""
    surface_m = PiperMobileRobot.surface_m

    def banana(above_m: float) -> Goal:
        def goal(obs: Obs) -> NDArray:
            place = obs["banana_pose"][:, :3].copy()
            place[:, 2] = surface_m + max(BANANA_R_M, LOWEST_M) + above_m
            return place

        return goal

    steps = [
        Stage((Hold(banana(0.06), OPEN, 0.015),)),
        Stage((Hold(banana(0.0), OPEN, 0.009),), 1),
        Stage((Hold(lambda o: o["tip_pos"], SHUT, 1.0),), 10),
        Stage((Hold(_up_to(surface_m + 0.20), SHUT, 0.0),)),
    ]
    arms = [ArmView("state", "tip_pos", PiperMobileRobot.shoulder)]
    return IncrementExpert(steps, arms, num_envs)


def hand_over(num_envs: int) -> IncrementExpert:
    """The left arm takes the stick to the middle, the right one takes it from there."""
    task = HandOver()
    surface_m = task.surface_m
    right_shoulder = tuple(np.add(task.base, MOUNTS[RIGHT]).tolist())
    meet = np.array([0.56, 0.06, surface_m + 0.16])

    def stick(share: float, above_m: float) -> Goal:
        def goal(obs: Obs) -> NDArray:
            place = obs["stick_pose"][:, :3].copy()
            place[:, 1] += share
            place[:, 2] = np.maximum(place[:, 2], surface_m + LOWEST_M) + above_m
            return place

        return goal

    def to_meet(obs: Obs) -> NDArray:
        return meet + obs["left_tip"] * 0

    def stay(name: str) -> Goal:
        return lambda obs: obs[name]

    away = np.array([0.48, 0.30, surface_m + 0.28])
    aside = np.array([0.45, -0.20, surface_m + 0.22])
    waits = Hold(lambda o: aside + o["right_tip"] * 0, OPEN, 0.03)
    left_holds = Hold(to_meet, SHUT, 0.02)
    steps = [
        Stage((Hold(stick(0.05, 0.07), OPEN, 0.012), waits)),
        Stage((Hold(stick(0.05, 0.0), OPEN, 0.007), waits), 2),
        Stage((Hold(stay("left_tip"), SHUT, 1.0), waits), 12),
        Stage((left_holds, waits), 3),
        Stage((left_holds, Hold(stick(-0.06, 0.06), OPEN, 0.015))),
        Stage((left_holds, Hold(stick(-0.06, 0.0), OPEN, 0.010)), 3),
        Stage((left_holds, Hold(stay("right_tip"), SHUT, 1.0)), 12),
        Stage((Hold(stay("left_tip"), OPEN, 1.0), Hold(stay("right_tip"), SHUT, 1.0)), 8),
        Stage(
            (Hold(lambda o: away + o["left_tip"] * 0, OPEN, 0.0),
             Hold(stay("right_tip"), SHUT, 1.0))
        ),
    ]  # fmt: skip
    arms = [
        # The stick lies across: so must the hands.
        ArmView("left_pos", "left_tip", task.shoulder, np.pi / 2),
        ArmView("right_pos", "right_tip", right_shoulder, np.pi / 2),
    ]
    return IncrementExpert(steps, arms, num_envs)


class Hold:
    """Where one arm should be in a stage, and how its gripper is."""

    def __init__(self, goal: Goal, grip: float, tolerance_m: float) -> None:
        self.goal, self.grip, self.tolerance_m = goal, grip, tolerance_m


class Stage:
    """What all arms do at the same time, and for how many steps they must be there."""

    def __init__(self, arms: Sequence[Hold], hold_steps: int = 1) -> None:
        self.arms, self.hold_steps = arms, hold_steps


class ArmView:
    """Which observations are an arm's joints and tip, where its base stands, how it grasps."""

    def __init__(self, joints: str, tip: str, shoulder: Vec3, roll_rad: float = 0.0) -> None:
        self.joints, self.tip, self.shoulder = joints, tip, shoulder
        self.roll_rad = roll_rad


class IncrementExpert:
    """Moves arms by joint increments through stages, every row at its own pace."""

    def __init__(self, stages: Sequence[Stage], arms: Sequence[ArmView], num_envs: int) -> None:
        self._stages, self._arms = stages, arms
        self._kinematics = [Kinematics(PIPER, arm.shoulder, num_envs, 1) for arm in arms]
        self._at = np.zeros(num_envs, np.int64)
        self._held = np.zeros(num_envs, np.int64)
        self._steps = np.array([STEPS[name] for name in ARM])

    def act(self, obs: Obs) -> NDArray[np.float32]:
        """Return the next action of every row."""
        rows, parts = np.arange(len(self._at)), []
        is_there = np.ones(len(rows), np.bool_)
        for k, (arm, kinematics) in enumerate(zip(self._arms, self._kinematics, strict=True)):
            holds = [stage.arms[k] for stage in self._stages]
            goal = np.stack([hold.goal(obs) for hold in holds])[self._at, rows]
            parts.append(self._towards(arm, kinematics, obs, goal))
            parts.append(np.array([hold.grip for hold in holds])[self._at][:, None])
            gap = np.sqrt(((goal - obs[arm.tip]) ** 2).sum(1))
            is_there &= gap < np.array([hold.tolerance_m for hold in holds])[self._at]
        self._held = np.where(is_there, self._held + 1, 0)
        enough = np.array([stage.hold_steps for stage in self._stages])[self._at]
        goes_on = (self._held >= enough) & (self._at < len(self._stages) - 1)
        self._at += goes_on
        self._held[goes_on] = 0
        return np.concatenate(parts, axis=1).astype(np.float32)

    def reset(self, rows: NDArray[np.bool_] | slice = slice(None)) -> None:
        """Start over in rows that begin an episode."""
        self._at[rows] = 0
        self._held[rows] = 0

    def _towards(self, arm: ArmView, kinematics: Kinematics, obs: Obs, goal: NDArray) -> NDArray:
        q = obs[arm.joints][:, :6].astype(np.float64)
        way = goal - arm.shoulder
        far = np.hypot(way[:, 0], way[:, 1])
        lean = np.clip((far - 0.42) / 0.16, 0.0, 1.0)
        pitch = DOWN_RAD + lean * (FLAT_RAD - DOWN_RAD)
        turn = np.stack([euler_mat((arm.roll_rad, float(p), 0.0)) for p in pitch])
        wanted = kinematics.solve(
            q, goal.astype(np.float64), turn, turn_weight=0.05, iterations=4, largest_step=0.3,
            position_first=2,
        )  # fmt: skip
        # All joints together, so that the tip goes straight.
        return _limited((wanted - q) / self._steps)


def _limited(step: NDArray) -> NDArray:
    longest = np.abs(step).max(axis=1, keepdims=True)
    return step / np.maximum(longest, 1.0)
