"""The spaces of an RLBench environment, known before CoppeliaSim is started."""

from __future__ import annotations

import numpy as np

from maniple.core.errors import BadConfig
from maniple.core.group import Contract
from maniple.core.space import box, dict_space
from maniple.core.spec import ArraySpec, Layout
from maniple.core.step import scalar
from maniple.envs.rlbench.config import LOW_DIM, POSE_MODES, RLBenchConfig

FPS = 20
"""Simulation steps per second; an action takes one or more of them."""

FLOAT = np.dtype(np.float32)


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
        action_space=box(action),
        metadata={
            "render_modes": ["rgb_array"],
            "render_fps": FPS,
            "arm_mode": config.arm_mode,
        },
        render_mode="rgb_array" if config.cameras else None,
    )


def action_spec(config: RLBenchConfig) -> ArraySpec:
    """Say what an action may be: any finite numbers, since RLBench judges them itself."""
    numbers = 7 if config.arm_mode in POSE_MODES else config.joints
    return ArraySpec((numbers + 1,), FLOAT)


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
        if shape is None:
            raise BadConfig(
                f"The size of {name} is known only after CoppeliaSim has started: "
                "make the environments, and read their observation_space."
            )
        arrays[name] = ArraySpec(shape, FLOAT)
    height, width = config.image_size
    kinds = {
        "rgb": ArraySpec((height, width, 3), np.dtype(np.uint8), 0, 255),
        "depth": ArraySpec((height, width), FLOAT, 0.0),
        "mask": ArraySpec((height, width), np.dtype(np.int32)),
        "point_cloud": ArraySpec((height, width, 3), FLOAT),
    }
    for camera in config.cameras:
        arrays |= {f"{camera}_{kind}": kinds[kind] for kind in config.image_kinds}
    return Layout(arrays)
