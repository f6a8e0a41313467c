"""Settings that every environment understands."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite
from numbers import Integral
from pathlib import Path

from maniple.core.errors import BadConfig, closest, unknown_option
from maniple.core.spec import IMAGE_KINDS, check_picture_size
from maniple.sim.control.control import CONTROLS
from maniple.sim.perturbation import checked
from maniple.sim.renderer import QUALITIES, check_renderer

GRASPS = (None, "attach", "contact")
REWARDS = (None, "dense", "sparse")
RENDER_MODES = (None, "rgb_array", "human")
ALL = ("all",)
"""Every observation, where a task by itself shows fewer."""


@dataclass(frozen=True)
class EnvConfig:
    """How a task is run; the defaults are the task's own."""

    control: str | None = None
    """How actions move the robot: raw, joint, delta_joint, ee; with a discrete gripper ik,
    planning, delta_ee, delta_position, joint_position or joint_velocity; None: the task's own."""

    robot: str | None = None
    """Another robot of 'maniple list --robots', where the task can take it; None: the task's."""

    reward: str | None = None
    """dense (the task's shaped terms) or sparse (1 on success, else 0); None: dense, and sparse
    on the real RLBench."""

    randomize: bool = False
    """Vary masses, friction, damping and colours in every episode."""

    perturb: tuple[tuple[str, float], ...] = ()
    """How far every row's world may differ: light, camera, mass, action_delay and so on, each with
    a number; in Python a dict. sim/perturbation_axes.py lists them."""

    max_episode_steps: int | None = None
    """Steps after which an episode is truncated; None: the task's choice."""

    terminate_on_success: bool = True
    """End the episode as soon as the task is solved."""

    action_repeat: int = 1
    """Control steps for which one action is held."""

    clip_actions: bool = False
    """Clip actions that are out of range instead of refusing them."""

    cameras: tuple[str, ...] = ()
    """Cameras whose pictures are part of the observation."""

    image_size: tuple[int, int] = (128, 128)
    """Height and width of those pictures, pixels; in Python one number means a square."""

    image_kinds: tuple[str, ...] = ("rgb",)
    """What those pictures show: rgb, depth (metres), segmentation (geom numbers, -1: nothing),
    mask (body numbers, 0: the world), point_cloud (metres, world)."""

    arms: int | None = None
    """Arms that are driven, of a robot that has two; None: the task's choice."""

    base: bool = False
    """Drive the base too, of a robot that can move; its speeds are the last two actions."""

    renderer: str = "auto"
    """What draws pictures: fast (primitives, on the processor), mujoco (OpenGL), rays (slow, needs
    no GL library), splat (Gaussian splats), hybrid (splats of what never moves, geoms of the rest),
    or auto: fast where it can draw the scene, else mujoco, else rays."""

    scene: str | None = None
    """Scene file (YAML) of the splats to draw; None: the task's own, made once where need be."""

    quality: str = "lean"
    """lean (no shadows, one ray per pixel) or fine (shadows, smooth edges)."""

    observations: tuple[str, ...] | None = None
    """Names of the task's observations to keep, or all; None: the task's choice, mostly all."""

    variation: int | None = None
    """Which of the task's variations every episode has; None: drawn anew for each."""

    grasp: str | None = None
    """attach (a shut gripper holds what is between its fingers), contact (friction alone);
    None: the task's choice."""

    invalid_penalty: float = 0.0
    """Taken off the reward of a step whose action could not be carried out."""

    render_every: int = 1
    """Draw them at every k-th step of an episode; between, the last ones repeat."""

    render_mode: str | None = None
    """None, rgb_array, or human (a window)."""

    camera: str | None = None
    """Camera that render() looks through; None: the task's first."""

    width: int = 640
    """Width of render()'s pictures, pixels."""

    height: int = 480
    """Height of render()'s pictures, pixels."""

    def __post_init__(self) -> None:
        if self.control is not None:
            _one_of("control", self.control, tuple(CONTROLS))
        _one_of("reward", self.reward, REWARDS)
        _one_of("render_mode", self.render_mode, RENDER_MODES)
        _one_of("quality", self.quality, QUALITIES)
        check_renderer(self.renderer)
        _one_of("grasp", self.grasp, GRASPS)
        if isinstance(self.image_size, Integral) and not isinstance(self.image_size, bool):
            object.__setattr__(self, "image_size", (int(self.image_size),) * 2)
        for name in ("cameras", "image_size", "image_kinds", "observations"):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, (str, tuple, list)):
                raise BadConfig(f"{name} is {value!r}; give names in a tuple or a list.")
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        object.__setattr__(self, "perturb", checked(self.perturb))
        for kind in self.image_kinds:
            _one_of("image_kinds", kind, IMAGE_KINDS)
        if len(self.image_size) != 2:
            raise BadConfig(f"image_size is {self.image_size}; it must be (height, width).")
        for side in self.image_size:
            _at_least_one("image_size", side)
        check_picture_size("image_size", self.image_size)
        for name in ("action_repeat", "width", "height", "render_every"):
            _at_least_one(name, getattr(self, name))
        check_picture_size("height, width", (self.height, self.width))
        for name in ("max_episode_steps", "arms"):
            if getattr(self, name) is not None:
                _at_least_one(name, getattr(self, name))
        if not isinstance(self.base, bool):
            raise BadConfig(f"base is {self.base!r}; it is True or False.")
        self._check_scene()
        if not (isfinite(self.invalid_penalty) and self.invalid_penalty >= 0):
            raise BadConfig(
                f"invalid_penalty is {self.invalid_penalty}; it is taken off the reward, so that "
                "it must be a number, 0 or larger."
            )

    def _check_scene(self) -> None:
        if self.scene is None:
            return
        if not isinstance(self.scene, (str, Path)):
            raise BadConfig(f"scene is {self.scene!r}; give the path of a scene file.")
        if self.renderer not in ("splat", "hybrid"):
            raise BadConfig(
                f"scene={str(self.scene)!r} is drawn by the renderers splat and hybrid, and "
                f"renderer is {self.renderer!r}."
            )

    @classmethod
    def of(cls, options: dict) -> EnvConfig:
        """Make a config from keyword arguments, naming the ones that do not exist."""
        known = [f.name for f in fields(cls)]
        for name in options:
            if name not in known:
                raise unknown_option(name, known)
        return cls(**options)


def _one_of(name: str, value, allowed: tuple) -> None:
    if value not in allowed:
        hint = closest(str(value), [a for a in allowed if a])
        raise BadConfig(f"{name} is {value!r}.{hint} It may be one of: {allowed}.")


def _at_least_one(name: str, value) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadConfig(f"{name} is {value!r}; it must be a whole number, 1 or larger.")
