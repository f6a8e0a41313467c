"""The real simulator: launched once in its process, and never again."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.envs.rlbench.compat import call, has_parameter
from maniple.envs.rlbench.config import (
    CAMERAS,
    DELTA_MODES,
    LOW_DIM,
    POSE_MODES,
    STATES,
    RLBenchConfig,
)
from maniple.envs.rlbench.home import Home
from maniple.sim.control.control import STEP_M, STEP_RAD
from maniple.sim.rotation import small_turn
from maniple.sim.xvfb import Xvfb, check_display, wants_own_display

RESET_TRIES = 10
# Class of each arm mode, and whether its numbers are absolute (None: it has no such choice).
MODES = {
    "ik": ("EndEffectorPoseViaIK", True),
    "planning": ("EndEffectorPoseViaPlanning", True),
    "delta_ee": ("EndEffectorPoseViaIK", False),
    "delta_position": ("EndEffectorPoseViaIK", False),
    "joint_position": ("JointPosition", True),
    "delta_joint": ("JointPosition", False),
    "joint_velocity": ("JointVelocity", None),
    "joint_torque": ("JointTorque", None),
}


class InvalidAction(Exception):
    """An action that RLBench could not carry out; nothing is broken."""


class Simulator:
    """RLBench's Environment and TaskEnvironment, for one task.

    Any error but InvalidAction means that the simulator cannot be used any more. It is then to be
    left with its process: launching twice in one process ends in a segmentation fault.
    """

    def __init__(self, config: RLBenchConfig) -> None:
        self.config = config
        self.sentence = ""
        self.variation = 0
        self._display: Xvfb | None = None
        self._home = Home()
        self._environment: Any = None
        os.environ.update(self._home.variables())
        # CoppeliaSim prints to the output that belongs to the user's program.
        os.dup2(2, 1)
        if config.cameras and wants_own_display():
            self._display = Xvfb()
            os.environ["DISPLAY"] = self._display.display
        elif config.cameras:
            check_display(os.environ.get("DISPLAY", ""))
        try:
            self._load()
            self._launch()
        except BaseException:
            self._let_go()
            raise

    def reset(self, seed: int, variation: int | None) -> None:
        """Begin an episode: the same seed places things in the same way."""
        self._draw_variation(seed, variation)
        for attempt in range(RESET_TRIES):
            try:
                sentences, _ = self._task.reset()
                break
            except self._placement_errors:
                # The scene found no room for its objects: draw again.
                if attempt == RESET_TRIES - 1:
                    raise
        self.sentence = str(sentences[0]) if len(sentences) else ""

    def _draw_variation(self, seed: int, variation: int | None) -> None:
        """Seed what RLBench draws from, and choose or draw the variation."""
        np.random.seed(seed % 2**32)  # noqa: NPY002  (RLBench draws from the global streams)
        random.seed(seed)
        task = self._task
        if variation is None:
            self.variation = int(task.sample_variation())
        else:
            count = int(task.variation_count())
            if variation >= count:
                raise BadConfig(
                    f"variation is {variation}, but {self.config.task} has {count}: "
                    f"give 0 to {count - 1}."
                )
            self.variation = variation
            task.set_variation(variation)

    def step(self, action: NDArray) -> tuple[float, bool]:
        """Carry an action out; return the reward and whether the episode is over.

        Raises:
            InvalidAction: It cannot be carried out.
        """
        command = self._command(np.asarray(action, np.float64))
        try:
            _, reward, is_over = self._task.step(command)
        except self._invalid_errors as error:
            raise InvalidAction(f"{type(error).__name__}: {error}") from None
        return float(reward), bool(is_over)

    def observe(self, with_pictures: bool) -> Any:
        """Return RLBench's Observation; drawing is left out unless it is asked for."""
        if not with_pictures or not self.config.cameras:
            return self._task.get_observation()
        self._draw(True)
        try:
            return self._task.get_observation()
        finally:
            self._draw(False)

    def live_demos(self, amount: int, seed: int, variation: int | None) -> list[Any]:
        """Have RLBench's own waypoint planner demonstrate the task, the first from this seed."""
        # It resets the scene itself, and draws what `reset` with this seed draws.
        self._draw_variation(seed, variation)
        self._draw(True)
        try:
            return list(self._task.get_demos(amount, live_demos=True))
        finally:
            self._draw(False)

    def close(self) -> None:
        """Shut the simulator down; the process must end after this."""
        environment, self._environment = self._environment, None
        if environment is not None:
            with contextlib.suppress(Exception):
                environment.shutdown()
        self._let_go()

    def _let_go(self) -> None:
        if self._display is not None:
            self._display.close()
        self._home.close()

    def _load(self) -> None:
        """Import RLBench, which loads CoppeliaSim's library."""
        load = importlib.import_module
        exceptions, errors = load("rlbench.backend.exceptions"), load("pyrep.errors")
        self._invalid_errors = (
            exceptions.InvalidActionError,
            errors.IKError,
            errors.ConfigurationPathError,
        )
        # 1.2.0 wraps the first two into the third.
        self._placement_errors = (
            exceptions.BoundaryError,
            exceptions.WaypointError,
            exceptions.TaskEnvironmentError,
        )

    def _launch(self) -> None:
        load, config = importlib.import_module, self.config
        self._pictures = self._observation_config()
        make = load("rlbench.environment").Environment
        if config.reward == "dense" and not has_parameter(make, "shaped_rewards"):
            raise BadConfig("This RLBench has no dense rewards; use reward='sparse'.")
        self._environment = call(
            make,
            self._action_mode(),
            obs_config=self._pictures,
            headless=True,
            robot_setup=config.robot_setup,
            static_positions=config.static_positions,
            attach_grasped_objects=config.attach_grasped_objects,
            shaped_rewards=config.reward == "dense",
            dataset_root=config.dataset_root,
            arm_max_velocity=config.arm_max_velocity,
            arm_max_acceleration=config.arm_max_acceleration,
        )
        self._environment.launch()
        _run_at_full_speed()
        task = self._task_class()
        self._task = self._environment.get_task(task)
        # Only now: a camera that is off at the launch is taken out of the scene.
        self._draw(False)

    def _task_class(self) -> Any:
        """Find the task, and see that its scene is there: a missing one ends in a dump."""
        name, package = self.config.task, find_spec("rlbench")
        try:
            found = importlib.import_module("rlbench.utils").name_to_task_class(name)
        except Exception as error:
            raise BadConfig(
                f"The RLBench that is installed has no task {name!r} ({type(error).__name__}). "
                "Some tasks are only in the fork of PerAct."
            ) from None
        places = package.submodule_search_locations if package else None
        for scenes in (Path(place) / "task_ttms" for place in places or ()):
            if scenes.is_dir() and not (scenes / f"{name}.ttm").is_file():
                raise BadConfig(
                    f"RLBench's scene {scenes / name}.ttm is missing. Install RLBench again: "
                    "bash scripts/install_rlbench.sh"
                )
        return found

    def _action_mode(self) -> Any:
        load, config = importlib.import_module, self.config
        name, is_absolute = MODES[config.arm_mode]
        arm_modes = load("rlbench.action_modes.arm_action_modes")
        make = getattr(arm_modes, name)
        options: dict[str, Any] = {}
        if is_absolute is not None:
            options["absolute_mode"] = is_absolute
        if config.arm_mode in POSE_MODES + DELTA_MODES:
            options["collision_checking"] = config.collision_checking
        arm = call(make, **options)
        # The fork of PerAct takes one number more: whether to ignore collisions.
        planning = arm_modes.EndEffectorPoseViaPlanning.action
        self._ends = (
            [float(not config.collision_checking)]
            if has_parameter(planning, "ignore_collisions")
            else []
        )
        discrete = load("rlbench.action_modes.gripper_action_modes").Discrete
        gripper = call(discrete, attach_grasped_objects=config.attach_grasped_objects)
        return load("rlbench.action_modes.action_mode").MoveArmThenGripper(arm, gripper)

    def _observation_config(self) -> Any:
        load, config = importlib.import_module, self.config
        module, modes = load("rlbench.observation_config"), load("pyrep.const").RenderMode
        height, width = config.image_size
        found = module.ObservationConfig()
        found.set_all(False)
        for camera in CAMERAS:
            is_on = camera in config.cameras
            made = call(
                module.CameraConfig,
                # A point cloud alone comes out as None: it is made of what depth needs.
                rgb=is_on,
                depth=is_on and bool({"depth", "point_cloud"} & set(config.image_kinds)),
                point_cloud=is_on and "point_cloud" in config.image_kinds,
                mask=is_on and "mask" in config.image_kinds,
                image_size=(width, height),
                render_mode=getattr(modes, config.coppelia_renderer.upper()),
                masks_as_one_channel=True,
                depth_in_meters=True,
            )
            setattr(found, f"{camera}_camera", made)
        self._cameras = {name: getattr(found, f"{name}_camera") for name in config.cameras}
        self._kinds = {
            name: [k for k in ("rgb", "depth", "point_cloud", "mask") if getattr(camera, k)]
            for name, camera in self._cameras.items()
        }
        for name in STATES:
            if name in config.observations and name != "variation_index":
                setattr(found, name, True)
        # Demonstrations are turned into actions by these two.
        found.gripper_pose = found.gripper_open = True
        if LOW_DIM in config.observations:
            found.task_low_dim_state = True
        return found

    def _draw(self, is_on: bool) -> None:
        """Switch the cameras: RLBench draws whatever is on with every observation that it makes."""
        for name, camera in self._cameras.items():
            for kind in self._kinds[name]:
                setattr(camera, kind, is_on)

    def _command(self, action: NDArray[np.float64]) -> NDArray[np.float64]:
        """Make an action that RLBench accepts, or say that it is none.

        A number that is not finite would hang the simulator for minutes and then break it.
        """
        if not np.isfinite(action).all():
            raise InvalidAction(f"the action {action} is not finite")
        command = _delta_pose(action) if self.config.arm_mode in DELTA_MODES else action.copy()
        if self.config.arm_mode in POSE_MODES:
            length = float(np.linalg.norm(command[3:7]))
            if length < 0.1:
                raise InvalidAction(f"the quaternion {command[3:7]} has no direction")
            command[3:7] /= length
        # Discrete: above a half is open. What lies outside of 0 to 1 is meant for its end.
        command[-1] = np.clip(command[-1], 0.0, 1.0)
        return np.concatenate([command, self._ends])


def _delta_pose(action: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn [steps, rotation vector if there is one, gripper] into RLBench's pose to add."""
    w, x, y, z = small_turn(action[3:6] * STEP_RAD if len(action) == 7 else np.zeros(3))
    return np.array([*action[:3] * STEP_M, x, y, z, w, action[-1]])


def _run_at_full_speed() -> None:
    """Keep CoppeliaSim from waiting for the clock; the function is not in every version."""
    with contextlib.suppress(ImportError, AttributeError):
        sim = importlib.import_module("pyrep.backend.sim")
        sim.simSetBoolParameter(sim.sim_boolparam_realtime_simulation, False)
