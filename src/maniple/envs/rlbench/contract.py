"""The spaces of an RLBench environment, known before CoppeliaSim is started."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.group import Contract
from maniple.core.space import box, dict_space
from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import scalar
from maniple.envs import meanings
from maniple.envs.rlbench.config import DELTA_MODES, LOW_DIM, POSE_MODES, USUAL, RLBenchConfig
from maniple.sim.control.control import DELTA_MEANING, GRIP_MEANING, POSITION_MEANING

FPS = 20
"""Simulation steps per second; an action takes one or more of them."""

FLOAT = np.dtype(np.float32)


WORKSPACE_LOW_M, WORKSPACE_HIGH_M = (-0.275, -0.655, 0.752), (0.775, 0.655, 1.752)
MOST_PER_JOINT = {
    "joint_position": 3.14, "delta_joint": 0.1, "joint_velocity": 1.0, "joint_torque": 20.0,
}  # fmt: skip
"""Rad, rad, rad/s, N.m."""


def contract(config: RLBenchConfig, low_dim: int | None = None) -> Contract:
    """Describe the environment.

    Args:
        config: Its settings.
        low_dim: Numbers in task_low_dim_state, if that is observed.
    """
    observation = observations(config, low_dim)
    action = action_spec(config)
    return Contract(
        observation=observation,
        action=Layout({"action": action}),
        extras=Layout(
            {
                "success": scalar(np.bool_),
                "invalid_action": scalar(np.bool_),
                # In this episode so far: a chunk shows only its last step's flag.
                "invalid_actions": scalar(np.int64),
            }
        ),
        observation_space=dict_space(observation),
        reset_options=("variation",),
        action_space=box(sensible_actions(config)),
        metadata={
            "render_modes": ["rgb_array"],
            "render_fps": FPS,
            "arm_mode": config.arm_mode,
        },
        render_mode="rgb_array" if config.cameras else None,
    )


ARM_MEANINGS = {
    "ik": "pose of the tip: position (m), quaternion xyzw; world",
    "planning": "pose of the tip: position (m), quaternion xyzw; world",
    "delta_ee": DELTA_MEANING,
    "delta_position": POSITION_MEANING,
    "joint_position": "joint targets (rad)",
    "delta_joint": "steps of the joints (rad)",
    "joint_velocity": "joint velocities (rad/s)",
    "joint_torque": "joint torques (N.m)",
}


def action_spec(config: RLBenchConfig) -> ArraySpec:
    """Say what an action may be: any finite numbers, since RLBench judges them itself."""
    sizes = {"ik": 7, "planning": 7, "delta_ee": 6, "delta_position": 3}
    numbers = sizes.get(config.arm_mode, config.joints)
    meaning = f"{ARM_MEANINGS[config.arm_mode]}; {GRIP_MEANING}"
    return ArraySpec((numbers + 1,), FLOAT, meaning=meaning)


def sensible_actions(config: RLBenchConfig) -> ArraySpec:
    """Say where useful actions lie: what is sampled, and what a policy is scaled to."""
    spec = action_spec(config)
    if config.arm_mode in POSE_MODES:
        low, high = (*WORKSPACE_LOW_M, *(-1.0,) * 4, 0), (*WORKSPACE_HIGH_M, *(1.0,) * 4, 1)
    elif config.arm_mode in DELTA_MODES:
        # As on MuJoCo, the gripper included.
        low, high = (-1.0,) * spec.size, (1.0,) * spec.size
    else:
        most = MOST_PER_JOINT[config.arm_mode]
        low, high = (*(-most,) * config.joints, 0), (*(most,) * config.joints, 1)
    return ArraySpec(spec.shape, FLOAT, _floats(*low), _floats(*high), meaning=spec.meaning)


def _floats(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)


def observations(config: RLBenchConfig, low_dim: int | None = None) -> Layout:
    """Name and shape every array of the observation."""
    joints = (config.joints,)
    shapes = {
        "joint_velocities": joints,
        "joint_positions": joints,
        "joint_forces": joints,
        "gripper_open": (1,),
        "gripper_pose": (7,),
        "gripper_joint_positions": (2,),
        "gripper_touch_forces": (6,),
        "gripper_matrix": (4, 4),
        "variation_index": (1,),
        LOW_DIM: None if low_dim is None else (low_dim,),
    }
    arrays = {}
    for name in config.observations:
        shape = shapes[name]
        if shape is None and config.observations == USUAL:
            # Nobody asked for it by name: before the launch the space is told without it.
            continue
        if shape is None:
            raise BadConfig(
                f"The size of {name} is known only after CoppeliaSim has started: "
                "make the environments, and read their observation_space."
            )
        arrays[name] = ArraySpec(shape, FLOAT, meaning=meanings.RLBENCH[name])
    height, width = config.image_size
    size = (height, width)
    shown = {**meanings.PICTURES, "mask": "CoppeliaSim's object handles"}
    kinds = {
        "rgb": ArraySpec((*size, 3), np.dtype(np.uint8), 0, 255, "rgb", shown["rgb"]),
        "depth": ArraySpec(size, FLOAT, 0.0, np.inf, "depth", shown["depth"]),
        "mask": ArraySpec(size, np.dtype(np.int32), image="mask", meaning=shown["mask"]),
        "point_cloud": ArraySpec(
            (*size, 3), FLOAT, image="point_cloud", meaning=shown["point_cloud"]
        ),
    }
    for camera in config.cameras:
        arrays |= {f"{camera}_{kind}": kinds[kind] for kind in config.image_kinds}
    return Layout(arrays)
