"""Scripted experts of the SO-101 tasks, for end-effector control."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.envs.expert import Obs, Waypoint, WaypointExpert
from maniple.envs.so101.desk import CUBE_HALF_M, DeskTask

OPEN, SHUT = 0.2, -1.0
# The jaw that does not move stands a little closer than the tip: leave it room beside the cube.
BESIDE = np.array([-0.002, 0.0, 0.0])


def reach(num_envs: int) -> WaypointExpert:
    """Go straight to the ball."""
    return _expert([Waypoint(lambda o: o["target_pos"], SHUT)], num_envs)


def lift_cube(num_envs: int) -> WaypointExpert:
    """Grasp from above and raise."""
    return _expert([*_grasp("cube_pose"), Waypoint(_straight_up(0.16), SHUT)], num_envs)


def push_cube(num_envs: int) -> WaypointExpert:
    """Take the cube between the jaws and slide it: pushed from one side it turns and escapes."""
    waypoints = [*_grasp("cube_pose"), Waypoint(lambda o: _onward(o, 0.025), SHUT, 0.0)]
    return _expert(waypoints, num_envs)


def stack_cubes(num_envs: int) -> WaypointExpert:
    """Grasp, carry above the other cube, set down, let go, retreat."""
    waypoints = [
        *_grasp("cube_pose"),
        Waypoint(_straight_up(0.075), SHUT, 0.012),
        Waypoint(lambda o: _carry(o, 0.045), SHUT, 0.006, 2),
        Waypoint(lambda o: _carry(o, 0.0015), SHUT, 0.0035, 3),
        Waypoint(lambda o: o["tip_pos"], OPEN, 1.0, 6),
        Waypoint(_straight_up(0.12), OPEN),
    ]
    return _expert(waypoints, num_envs)


def _expert(waypoints: list[Waypoint], num_envs: int) -> WaypointExpert:
    return WaypointExpert(waypoints, num_envs, DeskTask.ee_step_m)


def _grasp(cube: str) -> list[Waypoint]:
    return [
        Waypoint(lambda o: o[cube][:, :3] + BESIDE + [0, 0, 0.05], OPEN, 0.010),
        Waypoint(lambda o: o[cube][:, :3] + BESIDE, OPEN, 0.004, 2),
        Waypoint(lambda o: o["tip_pos"], SHUT, 1.0, 13),
    ]


def _straight_up(height_m: float):
    def goal(obs: Obs) -> NDArray:
        goal = obs["tip_pos"].copy()
        goal[:, 2] = height_m
        return goal

    return goal


def _onward(obs: Obs, distance_m: float) -> NDArray:
    """A point from the tip towards the disc, as seen from the cube."""
    way = obs["goal_pos"][:, :2] - obs["cube_pose"][:, :2]
    way = way / np.maximum(np.sqrt((way**2).sum(1, keepdims=True)), 1e-6)
    goal = obs["tip_pos"].copy()
    goal[:, :2] += way * distance_m
    # A little above the middle: the jaws must not scratch the desk.
    goal[:, 2] = 0.016
    return goal


def _carry(obs: Obs, above_m: float) -> NDArray:
    """Where the tip must be for the held cube to be above the other one."""
    wanted = obs["below_pose"][:, :3] + [0, 0, 2 * CUBE_HALF_M + above_m]
    return obs["tip_pos"] + (wanted - obs["cube_pose"][:, :3])
