"""The definition of a task: written once, batched over environments, run by every engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.sim.randomise import Randomisation
from maniple.sim.robots.robot import Robot
from maniple.sim.robots.table import find_robot
from maniple.sim.scene import new_scene
from maniple.sim.state import State

if TYPE_CHECKING:
    from maniple.envs.config import EnvConfig

Bounds = tuple[float, float]


class Task:
    """A scene, initial states, observations, a reward and an end. Arrays have the env axis first.

    Override what differs; the first line of the docstring is the sentence that people and
    language-conditioned policies read.
    """

    robot: Robot = find_robot("so101")
    """A robot, or in a subclass also its name in the table ROBOTS."""
    robots: tuple[str, ...] | None = ()
    """Names of other robots that the task can take, as in make_vec(id, robot=...); None: any."""
    base: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Where the robot's base stands (metres, world)."""
    control: str = "ee"
    """How actions move the robot unless a config says otherwise."""
    ee_step_m: float = 0.012
    """How far one end-effector action of size 1 moves the tip."""
    ee_low_m: tuple[float, float, float] = (-np.inf, -np.inf, -np.inf)
    ee_high_m: tuple[float, float, float] = (np.inf, np.inf, np.inf)
    """Box that end-effector targets stay in."""
    timestep_s: float = 0.004
    substeps: int = 10
    """Physics steps per control step."""
    ramp: tuple[float, ...] = (1.0,)
    """How much of a step's change of the servo targets is made after each part of the step: a
    stiff arm would jerk otherwise."""
    reads: tuple[str, ...] | None = None
    """The MjData fields that the task reads besides the state, places (`xpos`, `site_xpos` and so
    on) and `actuator_force`; None: any. With () hundreds of rows of one substep run a tenth faster.
    Binding another field is then an error, and so is changing body or geom positions by row."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Settings of EnvConfig that this task begins with where the user says nothing."""
    picture_names: ClassVar[Mapping[str, str]] = {}
    """Other names for pictures in the observation, as in {"3rd_rgb": "rgb"}."""
    choices: ClassVar[tuple[str, ...]] = ()
    """Which of `arms` and `base` can be chosen; elsewhere they are refused."""
    episode_steps: int | None = 100
    """Control steps until truncation; None: never."""
    observation_dtype: type = np.float32
    bounds: ClassVar[dict[str, Bounds]] = {}
    """Bounds of observations by name; what goes beyond is clipped. Others are unbounded."""
    meanings: ClassVar[Mapping[str, str]] = {}
    """Units, frame, quaternion order and range of observations by name, for people."""
    scales: ClassVar[dict[str, float]] = {}
    """Weight of each reward term; the keys are those of `terms`."""
    proprioception: tuple[str, ...] = ()
    """Observations that a real robot has of itself: what a policy on pictures may see besides.
    Needed as soon as there are cameras."""
    observations: tuple[str, ...] | None = None
    """Observations that are shown where the user names none; None: all of them."""
    has_success: bool = True
    """Whether `success` means anything."""
    randomisation: Randomisation = Randomisation()
    cameras: tuple[str, ...] = ("front", "wrist", "overhead")
    """Cameras of the scene; render() takes the first."""
    experimental: bool = False
    """Whether the scripted expert fails in more than a tenth of the episodes."""
    variations: int = 1
    """How many versions of the task there are: other colours, other drawers."""
    variation: int | None = None
    """The version of the episodes that begin now; None: drawn for each. `place` uses it."""

    def __init_subclass__(cls) -> None:
        # Only its own: else it would hide the robot of a class that it is mixed with.
        if "robot" in vars(cls):
            cls.robot = find_robot(cls.robot)

    @property
    def sentence(self) -> str:
        """What the robot is asked to do."""
        return (self.__doc__ or type(self).__name__).strip().splitlines()[0].rstrip(".")

    def configure(self, config: EnvConfig) -> None:
        """Read the settings that concern the task itself."""

    def sentences(self, variation: int) -> list[str]:
        """Return ways of saying what the robot is asked to do in one variation."""
        return [self.sentence]

    def after_step(self, s: State, active: NDArray[np.bool_] | None) -> None:
        """Write notes after a step of the active rows (None: all); see `State.note`."""

    def spec(self) -> mujoco.MjSpec:
        """Return the empty scene that `scene` fills; override for other physics settings."""
        return new_scene(type(self).__name__, self.timestep_s)

    def scene(self, spec: mujoco.MjSpec) -> None:
        """Add furniture, objects and cameras; the robot stands there already."""
        raise NotImplementedError

    def place(self, rng: Draws) -> dict[str, NDArray]:
        """Draw where things begin: name to position, pose or joint position, one row each."""
        return {}

    def observe(self, s: State) -> dict[str, NDArray]:
        """Return what the agent sees, (rows, ...) each: a pure function of the state."""
        raise NotImplementedError

    def points(self, name: str, size: int) -> tuple[int, ...]:
        """Tell where positions (x y z, world) begin in an observation: '..._pos', '..._pose'."""
        is_point = (name.endswith("_pos") and size == 3) or (name.endswith("_pose") and size == 7)
        return (0,) if is_point else ()

    def terms(self, s: State) -> dict[str, NDArray]:
        """Return the parts of the dense reward, (rows,) each, before weighting."""
        return {}

    def success(self, s: State) -> NDArray[np.bool_]:
        """Tell which rows have solved the task."""
        return np.zeros(s.rows, np.bool_)

    def failure(self, s: State) -> NDArray[np.bool_]:
        """Tell which rows can no longer be solved; they end, where solved ones do."""
        return np.zeros(s.rows, np.bool_)

    def metadata(self) -> dict:
        """Return what a trajectory's `sim_state` should carry along, as `sim_metadata`."""
        return {"task": type(self).__name__, "sentence": self.sentence}
