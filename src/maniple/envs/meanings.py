"""What the numbers of observations mean: units, frames, orders and ranges."""

from __future__ import annotations

from collections.abc import Mapping

PICTURES: Mapping[str, str] = {
    "rgb": "red, green, blue; first row on top",
    "depth": "distance along the optical axis (m)",
    "segmentation": "geom numbers, -1: nothing",
    "mask": "body numbers, 0: the world",
    "point_cloud": "x y z of each pixel (m); world",
}

RLBENCH: Mapping[str, str] = {
    "joint_velocities": "velocities of the arm's joints (rad/s)",
    "joint_positions": "positions of the arm's joints (rad)",
    "joint_forces": "torques of the arm's joints (N.m)",
    "gripper_open": "1 open, 0 shut",
    "gripper_pose": "tip: position (m), quaternion xyzw; world",
    "gripper_joint_positions": "how far each finger is open (m), 0 shut, 0.04 open",
    "gripper_touch_forces": "force on each of the two fingertips, x y z (N); fingertip's frame",
    "gripper_matrix": "tip: homogeneous matrix (m); world",
    "task_low_dim_state": "objects: position (m), quaternion xyzw; world; then joints (rad or m)",
    "variation_index": "number of the episode's variation",
}
"""RLBench's names, which the Panda tasks on MuJoCo share."""
