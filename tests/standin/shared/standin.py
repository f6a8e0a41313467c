"""A world with a gripper and a target, which breaks in the ways in which the real one does.

FAKE_RLBENCH names a fault: segv@step:3, segv@reset:1, hang@step:3, broken@step:3, exit@step:3,
launch_fail, handle_missing, boundary@reset:2 (that many times), invalid (every second action).
With FAKE_RLBENCH_ONCE=<file> it happens only to the process that manages to remove that file.
"""

import os
import signal
import time
from pathlib import Path

import numpy as np

HOME_POSE = np.array([0.2784, -0.0082, 1.4722, 0.0, 0.9927, 0.0, 0.121])
LOW, HIGH = np.array([-0.275, -0.655, 0.752]), np.array([0.775, 0.655, 1.752])
BROKEN = "The call failed on the V-REP side. Return value: -1"
CAMERAS = ("left_shoulder", "right_shoulder", "overhead", "wrist", "front")


class Fault:
    """What is to go wrong, and when."""

    def __init__(self):
        text, _, count = os.environ.get("FAKE_RLBENCH", "").partition(":")
        self.kind, _, self.where = text.partition("@")
        self.count = int(count or 1)
        self.calls = 0

    def strikes(self, where):
        if self.where != where or not self.kind:
            return ""
        self.calls += 1
        if self.kind == "boundary":
            return self.kind if self.calls <= self.count else ""
        return self.kind if self.calls == self.count and self.may_strike() else ""

    def is_on(self, kind):
        return self.kind == kind and self.may_strike()

    @staticmethod
    def may_strike():
        once = os.environ.get("FAKE_RLBENCH_ONCE")
        if not once:
            return True
        try:
            Path(once).unlink()
            return True
        except FileNotFoundError:
            return False


class World:
    """What CoppeliaSim holds."""

    launches = 0

    def __init__(self, obs_config, exceptions, make_observation):
        World.launches += 1
        if World.launches > 1:
            os.kill(os.getpid(), signal.SIGSEGV)  # As the real one does.
        self.fault = Fault()
        if self.fault.is_on("launch_fail"):
            raise RuntimeError("Could not launch CoppeliaSim: libGL error")
        self.obs_config, self.exceptions, self.make = obs_config, exceptions, make_observation
        # A camera that is off at the launch is taken out of the scene.
        self.sensors = [c for c in CAMERAS if _is_on(getattr(obs_config, f"{c}_camera"))]
        if self.sensors:
            assert os.environ.get("QT_QPA_PLATFORM", "xcb") == "xcb", "no OpenGL on this platform"
            assert os.environ.get("DISPLAY"), "qt.qpa.xcb: could not connect to display"
        self.renders = 0
        self.is_broken = False
        self.variation = 0
        self.joints = np.zeros(7)

    def check(self, where):
        if self.is_broken:
            raise RuntimeError(BROKEN)
        strike = self.fault.strikes(where)
        if strike == "segv":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif strike == "exit":
            os._exit(7)
        elif strike == "hang":
            time.sleep(1000)
        elif strike == "broken":
            self.is_broken = True
            raise RuntimeError(BROKEN)
        elif strike == "boundary":
            kinds = self.exceptions.BoundaryError, self.exceptions.TaskEnvironmentError
            raise kinds[self.fault.calls % 2]("Could not place the task")

    def reset(self):
        self.check("reset")
        self.pose = HOME_POSE.copy()
        self.open = 1.0
        self.target = HOME_POSE[:3] + np.random.uniform(-0.1, 0.1, 3)  # noqa: NPY002
        self.time = 0

    def go_to(self, pose, is_planned):
        invalid = self.exceptions.InvalidActionError
        if not np.isfinite(pose).all():
            time.sleep(185)
            self.is_broken = True
            raise RuntimeError(BROKEN)
        if abs(np.linalg.norm(pose[3:]) - 1) > 1e-4:
            raise invalid("Action contained non unit quaternion!")
        if is_planned and ((pose[:3] < LOW) | (pose[:3] > HIGH)).any():
            raise invalid("A path could not be found because the target is outside of workspace.")
        if not is_planned and np.linalg.norm(pose[:3] - self.pose[:3]) > 0.05:
            raise invalid("Could not perform IK via Jacobian.")
        self.pose = pose.copy()

    def success(self):
        return bool(np.linalg.norm(self.pose[:3] - self.target) < 0.03)

    def observe(self):
        config, seen, misc = self.obs_config, {}, {"variation_index": self.variation}
        for camera in CAMERAS:
            made = getattr(config, f"{camera}_camera")
            width, height = made.image_size
            kinds = ("rgb", "depth", "mask", "point_cloud")
            seen |= {f"{camera}_{kind}": None for kind in kinds}
            if camera not in self.sensors:
                continue
            misc[f"{camera}_camera_intrinsics"] = np.diag([-100.0, -100.0, 1.0])
            misc[f"{camera}_camera_extrinsics"] = np.eye(4)
            misc[f"{camera}_camera_near"], misc[f"{camera}_camera_far"] = 0.01, 4.5
            if made.rgb or made.depth:
                self.renders += 1
            if made.rgb:
                picture = np.zeros((height, width, 3), np.uint8)
                picture[..., 0] = self.renders % 256
                picture[0, :, 1] = 255  # The top row tells height from width.
                seen[f"{camera}_rgb"] = picture
            if made.depth:
                seen[f"{camera}_depth"] = np.full((height, width), 1.5, np.float32)
            if made.point_cloud and (made.rgb or made.depth):
                seen[f"{camera}_point_cloud"] = np.full((height, width, 3), 0.5)
            if made.mask:
                seen[f"{camera}_mask"] = np.full((height, width), 42.0, np.float32)
        state = {
            "joint_velocities": np.zeros(7),
            "joint_positions": self.joints.copy(),
            "joint_forces": np.zeros(7),
            "gripper_open": self.open,
            "gripper_pose": self.pose.copy(),
            "gripper_matrix": np.eye(4),
            "gripper_joint_positions": np.full(2, 0.04 * self.open),
            "gripper_touch_forces": np.zeros(6),
            "task_low_dim_state": self.target.copy(),
        }
        seen |= {name: v if getattr(config, name) else None for name, v in state.items()}
        extra = {"ignore_collisions": True} if hasattr(config, "record_ignore_collisions") else {}
        return self.make(**seen, **extra, misc=misc)


def _is_on(camera):
    return camera.rgb or camera.depth or camera.point_cloud or camera.mask


def check_library():
    """Refuse to be imported by a process that was started without CoppeliaSim's library path."""
    started_with = Path("/proc/self/environ").read_bytes().split(b"\0")
    root = os.environ.get("COPPELIASIM_ROOT", "?").encode()
    paths = [v.partition(b"=")[2] for v in started_with if v.startswith(b"LD_LIBRARY_PATH=")]
    if not paths or root not in paths[0].split(b":"):
        raise ImportError("libcoppeliaSim.so.1: cannot open shared object file")


class TaskClass:
    """What name_to_task_class returns."""

    def __init__(self, name):
        self.name = name


class CameraConfig:
    def __init__(
        self, rgb=True, rgb_noise=None, depth=True, depth_noise=None, point_cloud=True, mask=True,
        image_size=(128, 128), render_mode=None, masks_as_one_channel=True, depth_in_meters=False,
    ):  # fmt: skip
        self.rgb, self.depth, self.point_cloud, self.mask = rgb, depth, point_cloud, mask
        self.image_size, self.render_mode = image_size, render_mode
        self.masks_as_one_channel, self.depth_in_meters = masks_as_one_channel, depth_in_meters

    def set_all(self, value):
        self.rgb = self.depth = self.point_cloud = self.mask = value


class Configured:
    """The body of both ObservationConfigs."""

    def keep(self, values):
        for name, value in values.items():
            if name not in ("self", "__class__"):
                is_camera = name.endswith("_camera")
                setattr(self, name, CameraConfig() if is_camera and value is None else value)

    def set_all(self, value):
        for name, old in vars(self).items():
            if isinstance(old, CameraConfig):
                old.set_all(value)
            elif isinstance(old, bool):
                setattr(self, name, value)


class Stage:
    """The body of both Environments."""

    def keep(self, action_mode, obs_config, robot_setup, exceptions, observation, task_env):
        self._mode, self._config, self._setup = action_mode, obs_config, robot_setup
        self._exceptions, self._observation, self._task_env = exceptions, observation, task_env
        self._world = None

    def launch(self):
        if self._world is not None:
            raise RuntimeError("Already called launch!")
        if self._setup in ("jaco", "mico"):
            raise RuntimeError("Found invalid joint handle(s)")
        self._world = World(self._config, self._exceptions, self._observation)

    def shutdown(self):
        self._world = None

    def get_task(self, task_class):
        if self._world is None:
            self.launch()
        if self._world.fault.is_on("handle_missing"):
            raise RuntimeError("Handle Panda does not exist.")
        return self._task_env(self._world, task_class, self._mode)

    @property
    def action_shape(self):
        return self._mode.action_shape(self._world)


class Acting:
    """The body of both TaskEnvironments."""

    VARIATIONS = 3

    def __init__(self, world, task, mode):
        self._world, self._task, self._mode, self._is_reset = world, task, mode, False

    def get_name(self):
        return self._task.name

    def sample_variation(self):
        self._world.variation = int(np.random.randint(0, self.VARIATIONS))  # noqa: NPY002
        return self._world.variation

    def set_variation(self, v):
        if v >= self.VARIATIONS:
            raise self._world.exceptions.TaskEnvironmentError("Requested variation too large")
        self._world.variation = v

    def variation_count(self):
        return self.VARIATIONS

    def begin(self):
        self._world.reset()
        self._is_reset = True
        sentence = f"{self._task.name} number {self._world.variation}"
        return [sentence, "another way to say it"], self._world.observe()

    def get_observation(self):
        return self._world.observe()

    def step(self, action):
        if not self._is_reset:
            raise RuntimeError("Call 'reset' before calling 'step' on a task.")
        self._world.check("step")
        if self._world.fault.kind == "invalid":
            self._world.time += 1
            if self._world.time % 2:
                raise self._world.exceptions.InvalidActionError("Could not perform IK.")
        self._mode.action(self._world, np.asarray(action))
        is_over = self._world.success()
        return self._world.observe(), float(is_over), np.bool_(is_over)

    def get_demos(
        self, amount, live_demos=False, image_paths=False, callable_each_step=None,
        max_attempts=10, random_selection=True, from_episode_number=0,
    ):  # fmt: skip
        demos = []
        for _ in range(amount if live_demos else 0):
            _, seen = self.begin()
            demo, start = [seen], self._world.pose.copy()
            for part in (0.25, 0.5, 0.75, 1.0):
                self._world.pose[:3] = start[:3] + part * (self._world.target - start[:3])
                demo.append(self._world.observe())
            demos.append(demo)
        return demos


def _times(a, b):
    """Quaternions x y z w: the turn b, then the turn a, in the world, as RLBench adds poses."""
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.array([*vector, a[3] * b[3] - a[:3] @ b[:3]])


class ArmMode:
    """The body of every arm action mode."""

    numbers = 7

    def action_shape(self, scene):
        return (self.numbers,)

    def check_shape(self, scene, action):
        if action.shape != (self.numbers,):
            raise scene.exceptions.InvalidActionError(
                f"Expected the action shape to be: ({self.numbers},), but was shape: {action.shape}"
            )

    def move_to(self, scene, action, is_planned):
        self.check_shape(scene, action)
        pose = action.copy()
        if not self.is_absolute:
            pose[:3] += scene.pose[:3]
            pose[3:] = _times(action[3:], scene.pose[3:])
        scene.go_to(pose, is_planned)

    def move_joints(self, scene, action):
        self.check_shape(scene, action)
        scene.joints = (
            action.copy() if getattr(self, "is_absolute", False) else scene.joints + action
        )
