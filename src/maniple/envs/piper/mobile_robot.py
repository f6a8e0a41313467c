"""PiperMobileRobot-v0: pick up the banana, as users of the mobile Piper know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.envs.closeness import near
from maniple.envs.env import ManipleEnv
from maniple.envs.piper.places import POSE_BOUNDS, OnWheels, arm_pos
from maniple.envs.piper.things import BANANA_R_M, add_banana
from maniple.envs.task import Bounds
from maniple.sim.rotation import yaw_quat
from maniple.sim.state import State
from maniple.sim.userdata import add_note

MIDDLE, SPREAD_M = np.array([0.7, 0.15]), 0.1
LIFT_M, CLOSE_M = 0.10, 0.045
OPEN_M = 0.035
FALLEN_M = 0.05
MOST_TOUCHES = 30
"""Steps in a row with the arm on the table after which the episode ends."""
SENSORS = {"left": ("finger_left", "banana"), "right": ("finger_right", "banana")}


class PiperMobileRobot(OnWheels):
    """Pick up the banana."""

    control = "increment"
    timestep_s = 0.002
    substeps = 15
    episode_steps = 80
    bounds: ClassVar[dict[str, Bounds]] = {
        "state": (-3.2, 3.2),
        "tip_pos": POSE_BOUNDS,
        "banana_pose": POSE_BOUNDS,
    }
    meanings: ClassVar[Mapping[str, str]] = {
        "state": "positions of the left arm's six joints (rad) and its gripper (m)",
        "tip_pos": "left tip: position (m); world",
        "banana_pose": "position (m), quaternion wxyz; world",
    }
    scales: ClassVar[dict[str, float]] = {
        "reach": 1.0, "close": 1.0, "grasp": 1.0, "lift": 1.0, "success": 10.0, "fallen": -5.0,
        "table": -5.0, "table_long": -10.0,
    }  # fmt: skip
    proprioception = observations = ("state",)
    cameras = ("3rd", "wrist", "front", "overhead")
    defaults: ClassVar[Mapping[str, Any]] = {
        "cameras": ("3rd",),
        "image_size": (128, 128),
        "renderer": "splat",
    }
    picture_names: ClassVar[Mapping[str, str]] = {"3rd_rgb": "rgb", "3rd_depth": "depth"}

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add the banana, and sensors of what touches what."""
        super().scene(spec)
        add_banana(spec)
        add_note(spec, "touches")
        for name, (finger, thing) in SENSORS.items():
            _add_touch(spec, name, finger, thing)
        # Fingers on the table are how a flat thing is picked up; an arm on it is a mistake.
        _add_touch(spec, "table", "link2", "table", is_geom=True)

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Lay the banana anywhere on a disc."""
        far = SPREAD_M * np.sqrt(rng.uniform(0.0, 1.0))
        angle = rng.uniform(-np.pi, np.pi)
        xy = MIDDLE + far[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        height = np.full((len(rng), 1), self.surface_m + BANANA_R_M)
        yaw = rng.uniform(-0.35, 0.35)
        return {"banana": np.concatenate([xy, height, yaw_quat(yaw)], axis=1)}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return the arm's joints; where the banana is, for those who may know."""
        pose = np.concatenate([s.pos("banana"), s.quat("banana")], axis=1)
        seen = {"state": arm_pos(s), "tip_pos": s.pos("tip"), "banana_pose": pose}
        return seen | self.observe_parts(s)

    def after_step(self, s: State, active: NDArray[np.bool_] | None) -> None:
        """Count the steps in a row with the arm on the table."""
        touches = s.note("touches")
        now = np.where(_touched(s, "table"), touches + 1, 0)
        touches[:] = now if active is None else np.where(active, now, touches)

    def terms(self, s: State) -> dict[str, NDArray]:
        """Reward approach, grip, grasp and lift; punish a fallen banana and an arm on the table."""
        gap = s.gap("tip", "banana")
        is_close = gap < CLOSE_M
        shut = 1.0 - np.clip(arm_pos(s)[:, 6] / OPEN_M, 0.0, 1.0)
        touches = s.note("touches")
        return {
            "reach": near(gap, 0.2),
            "close": np.where(is_close, 1.0 + 0.5 * shut, 0.0),
            "grasp": self._is_held(s),
            "lift": np.clip(self._height(s) / LIFT_M, 0.0, 1.0),
            "success": self.success(s),
            "fallen": self._has_fallen(s),
            "table": touches > 0,
            "table_long": touches >= MOST_TOUCHES,
        }

    def success(self, s: State) -> NDArray[np.bool_]:
        """Ten centimetres up, between both fingers."""
        return (self._height(s) > LIFT_M) & self._is_held(s)

    def failure(self, s: State) -> NDArray[np.bool_]:
        """The banana is off the table, or the arm lay on it too long."""
        return self._has_fallen(s) | (s.note("touches") >= MOST_TOUCHES)

    def _height(self, s: State) -> NDArray:
        return s.pos("banana")[:, 2] - self.surface_m - BANANA_R_M

    def _has_fallen(self, s: State) -> NDArray[np.bool_]:
        return s.pos("banana")[:, 2] < self.surface_m - FALLEN_M

    def _is_held(self, s: State) -> NDArray[np.bool_]:
        return _touched(s, "left") & _touched(s, "right")


class PiperMobileRobotEnv(ManipleEnv):
    """The environment as a class: PiperMobileRobotEnv(render_mode="rgb_array")."""

    def __init__(self, **options: Any) -> None:
        from maniple.envs.task_recipe import TaskRecipe

        super().__init__(TaskRecipe.of(PiperMobileRobot, options))


def _add_touch(
    spec: mujoco.MjSpec, name: str, body: str, thing: str, is_geom: bool = False
) -> None:
    """Add a sensor that tells whether a body, or what hangs on it, touches a thing."""
    kind = mujoco.mjtObj.mjOBJ_GEOM if is_geom else mujoco.mjtObj.mjOBJ_XBODY
    own = mujoco.mjtObj.mjOBJ_XBODY
    sensor = spec.add_sensor(
        name=f"touch.{name}",
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=own,
        objname=body,
        reftype=kind,
        refname=thing,
    )
    # Whether there is a contact; no choice among several; one of them.
    sensor.intprm[:3] = [1, 0, 1]


def _touched(s: State, name: str) -> NDArray[np.bool_]:
    at = int(s.model.sensor(f"touch.{name}").adr[0])
    return s.bind("sensordata")[:, at] > 0
