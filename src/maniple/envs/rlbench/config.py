"""Settings of an RLBench environment."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from maniple.core.errors import BadConfig, closest, unknown_option
from maniple.core.spec import check_picture_size
from maniple.envs.rlbench.names import SHAPED, find_task

CAMERAS = ("front", "wrist", "left_shoulder", "right_shoulder", "overhead")
IMAGE_KINDS = ("rgb", "depth", "mask", "point_cloud")
JOINTS = {"panda": 7, "sawyer": 7, "ur5": 6}
"""Robots that RLBench can put in the Panda's place, and how many joints their arms have."""
BROKEN_ROBOTS = ("jaco", "mico")
"""Robots that RLBench names, and whose models it cannot load ('Found invalid joint handle')."""
POSE_MODES = ("ik", "planning")
DELTA_MODES = ("delta_ee", "delta_position")
JOINT_MODES = ("joint_position", "delta_joint", "joint_velocity", "joint_torque")
ARM_MODES = (*POSE_MODES, *DELTA_MODES, *JOINT_MODES)
COPPELIA_RENDERERS = ("opengl", "opengl3")
LOW_DIM = "task_low_dim_state"
STATES = (
    "joint_velocities",
    "joint_positions",
    "joint_forces",
    "gripper_open",
    "gripper_pose",
    "gripper_joint_positions",
    "gripper_touch_forces",
    "gripper_matrix",
    LOW_DIM,
    "variation_index",
)
USUAL = tuple(name for name in STATES if name != "gripper_matrix")
"""What is observed unless told otherwise: the names that the tasks on MuJoCo have, too."""


@dataclass(frozen=True)
class RLBenchConfig:
    """How a task of the real RLBench is run."""

    task: str
    """The task, in any spelling: OpenDrawer, open_drawer, open-drawer."""

    arm_mode: str = "ik"
    """What actions are: ik or planning (absolute pose x y z qx qy qz qw), delta_ee (steps and a
    rotation vector, as on MuJoCo), delta_position (steps, orientation held), joint_position,
    delta_joint, joint_velocity, joint_torque; then the gripper, 1 open, 0 shut."""

    robot_setup: str = "panda"
    """panda, sawyer or ur5."""

    cameras: tuple[str, ...] = ()
    """Cameras to draw: front, wrist, left_shoulder, right_shoulder, overhead."""

    image_size: tuple[int, int] = (128, 128)
    """Height and width of their pictures (RLBench's own setting is width and height); given to
    make_vec without cameras it means front and wrist."""

    image_kinds: tuple[str, ...] = ("rgb",)
    """What those pictures show: rgb, depth (m), mask (object handles), point_cloud (m, world)."""

    coppelia_renderer: str = "opengl"
    """opengl, or opengl3: RLBench's default, with shadows, 10 to 26 times slower without a GPU."""

    observations: tuple[str, ...] = USUAL
    """Numbers to observe. How many task_low_dim_state has is known only after the launch."""

    reward: str = "sparse"
    """sparse (1 on success), or dense where the task defines it."""

    variation: int | None = None
    """Which variation every episode has; None: drawn anew for each."""

    max_episode_steps: int = 200
    """Steps after which an episode is truncated."""

    invalid_penalty: float = 0.0
    """Taken off the reward of a step whose action could not be carried out."""

    collision_checking: bool = False
    """Have the planner avoid collisions."""

    static_positions: bool = False
    """Do not move the scene about between episodes."""

    attach_grasped_objects: bool = True
    """Hold what is grasped by attaching it to the gripper."""

    arm_max_velocity: float = 1.0
    """Of planned paths; not in the fork of PerAct."""

    arm_max_acceleration: float = 4.0
    """Of planned paths; not in the fork of PerAct."""

    dataset_root: str = ""
    """Folder of stored demonstrations."""

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("task", find_task(self.task))
        if type(self.image_size) is int:
            put("image_size", (self.image_size, self.image_size))
        for name in ("cameras", "image_kinds", "observations", "image_size"):
            value = getattr(self, name)
            put(name, (value,) if isinstance(value, str) else tuple(value))
        _all_of("cameras", self.cameras, CAMERAS)
        _all_of("image_kinds", self.image_kinds, IMAGE_KINDS)
        _all_of("observations", self.observations, STATES)
        _all_of("arm_mode", (self.arm_mode,), ARM_MODES)
        if self.robot_setup in BROKEN_ROBOTS:
            raise BadConfig(
                f"robot_setup is {self.robot_setup!r}, whose model RLBench cannot load (it says "
                f"'Found invalid joint handle'). Take one of: {', '.join(JOINTS)}."
            )
        _all_of("robot_setup", (self.robot_setup,), tuple(JOINTS))
        _all_of("coppelia_renderer", (self.coppelia_renderer,), COPPELIA_RENDERERS)
        _all_of("reward", (self.reward,), ("sparse", "dense"))
        if self.reward == "dense" and self.task not in SHAPED:
            raise BadConfig(
                f"RLBench defines no dense reward for {self.task}, only for {', '.join(SHAPED)}. "
                "Use reward='sparse'."
            )
        sizes = (*self.image_size, self.max_episode_steps)
        if len(self.image_size) != 2 or any(type(n) is not int or n < 1 for n in sizes):
            raise BadConfig(
                f"image_size is {self.image_size} and max_episode_steps {self.max_episode_steps}; "
                "they must be (height, width) and a number, all whole and 1 or larger."
            )
        check_picture_size("image_size", self.image_size)
        if self.variation is not None and self.variation < 0:
            raise BadConfig(f"variation is {self.variation}; give 0 or more, or None.")

    @property
    def joints(self) -> int:
        """Joints of the arm."""
        return JOINTS[self.robot_setup]

    @classmethod
    def of(cls, task: str, options: dict[str, Any]) -> RLBenchConfig:
        """Make a config from keyword arguments, naming the ones that do not exist."""
        options = dict(options)
        if "control" in options:
            options["arm_mode"] = options.pop("control")
        if "renderer" in options:
            _rename_renderer(options)
        options.pop("clip_actions", None)
        if "image_size" in options:
            options.setdefault("cameras", ("front", "wrist"))
        known = [f.name for f in fields(cls) if f.name != "task"]
        for name in options:
            if name not in known:
                raise unknown_option(name, known, "The backend rlbench has")
        return cls(task, **options)


def _rename_renderer(options: dict[str, Any]) -> None:
    """Accept `renderer`, as this backend's option was called before the other one had it too."""
    value = options.pop("renderer")
    if value not in ("auto", *COPPELIA_RENDERERS):
        raise BadConfig(
            f"renderer is {value!r}, but the backend rlbench draws with CoppeliaSim: leave it out, "
            f"or give coppelia_renderer, one of {', '.join(COPPELIA_RENDERERS)}."
        )
    if value != "auto":
        options.setdefault("coppelia_renderer", value)


def _all_of(name: str, values: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    for value in values:
        if value not in allowed:
            hint = closest(str(value), allowed)
            raise BadConfig(f"{name} is {value!r}.{hint} It may be one of: {', '.join(allowed)}.")
