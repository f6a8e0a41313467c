"""Show rows a world that is a little different, drawn anew for every episode."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.sim.control.control import actuators
from maniple.sim.distractors import PREFIX, Distractors
from maniple.sim.perturbation_axes import AXES, KINDS, USUAL, axis_of, check_kinds, checked
from maniple.sim.rotation import quat_mul, small_turn
from maniple.sim.simulation import Simulation
from maniple.sim.state import State

__all__ = ["AXES", "KINDS", "USUAL", "Perturber", "axis_of", "check_kinds", "checked"]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "background": ("geom_rgba",),
    "object_colour": ("geom_rgba",),
    "patchwork": ("geom_rgba",),
    "light": ("light_ambient", "light_diffuse"),
    "camera": ("cam_pos",),
    "camera_turn": ("cam_quat",),
    "mass": ("body_mass", "body_inertia"),
    "friction": ("geom_friction",),
    "damping": ("dof_damping",),
    "gravity": ("opt.gravity",),
    "servo": ("actuator_gainprm", "actuator_biasprm"),
}
"""Model fields of which every row gets its own, by axis; other axes change states or signals."""
LOOKS = ("geom_rgba", "light_ambient", "light_diffuse", "cam_pos", "cam_quat")
"""Those of the fields that renderers look at."""
MOVES_SHAPES = ("camera", "camera_turn")
"""Axes that move parts of the model, which a task with `reads` computes without them."""


class Perturber:
    """Draws anew for every row that begins an episode; the same seed brings the same world.

    Every axis has a stream of its own: what it draws does not depend on the others.
    """

    def __init__(
        self,
        sim: Simulation,
        state: State,
        joints: Sequence[str],
        how: Mapping[str, float],
        randomised: Collection[str] = (),
    ) -> None:
        """Prepare rows.

        Args:
            joints: All joints of the robot.
            how: How far each kind may go.
            randomised: Fields that somebody else draws before us in every episode.
        """
        self._sim, self._state, self._joints = sim, state, list(joints)
        self._how = dict(checked(how))
        model = sim.model
        robot = {int(model.body_rootid[model.joint(name).bodyid[0]]) for name in joints}
        is_robot = np.isin(model.body_rootid[model.geom_bodyid], list(robot))
        is_still = model.body_weldid[model.geom_bodyid] == 0
        is_still &= model.body_mocapid[model.geom_bodyid] < 0
        self._geoms = {
            "background": np.flatnonzero(is_still & ~is_robot),
            "object_colour": np.flatnonzero(~is_still & ~is_robot),
        }
        self._free, self._mocaps = _movable(model, robot)
        names = dict.fromkeys(name for kind in self._how for name in FIELDS.get(kind, ()))
        self._fields = {name: sim.expand(name) for name in names}
        self._nominal = {name: _field(model, name) for name in names if name not in set(randomised)}
        self._litter = Distractors(model, robot) if "distractors" in self._how else None

    @property
    def changes_looks(self) -> bool:
        """Whether rows have fields of their own that renderers must look at."""
        return any(name in LOOKS for name in self._fields)

    def draw(self, rows: NDArray[np.intp], rng: Draws) -> None:
        """Give rows that begin an episode their own world."""
        for name, nominal in self._nominal.items():
            self._fields[name][rows] = nominal
        # Things that lie about keep away from where the others are now.
        for kind, far in sorted(self._how.items(), key=lambda item: item[0] == "distractors"):
            change: Callable | None = getattr(self, f"_{kind}", None)
            if change is not None:
                change(rows, rng.branch(kind), far)
        self._sim.derive_constants(rows)

    def _background(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._tint(rows, self._geoms["background"], rng.uniform(-far, far, (1, 3)))

    def _object_colour(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._tint(rows, self._geoms["object_colour"], rng.uniform(-far, far, (1, 3)))

    def _patchwork(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        every = np.arange(self._sim.model.ngeom)
        self._tint(rows, every, rng.uniform(-far, far, (len(every), 3)))

    def _tint(self, rows: NDArray[np.intp], geoms: NDArray[np.intp], tint: NDArray) -> None:
        field, at = self._fields["geom_rgba"], (rows[:, None], geoms, slice(3))
        field[at] = np.clip(field[at] + tint, 0.0, 1.0)

    def _light(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        factor = rng.uniform(1 - far, 1 + far, (1, 1))
        for name in FIELDS["light"]:
            field = self._fields[name]
            field[rows] = np.clip(field[rows] * factor, 0.0, 1.0)

    def _camera(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        field = self._fields["cam_pos"]
        field[rows] = field[rows] + rng.uniform(-far, far, field.shape[1:])

    def _camera_turn(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        field = self._fields["cam_quat"]
        turns = rng.uniform(-far, far, (field.shape[1], 3)).reshape(-1, 3)
        turned = quat_mul(field[rows].reshape(-1, 4), small_turn(turns))
        field[rows] = turned.reshape(len(rows), -1, 4)

    def _distractors(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        assert self._litter is not None
        things = np.concatenate(
            [
                *(self._state.qpos[rows, at : at + 3][:, None] for at, _ in self._free),
                *(self._state.bind("mocap_pos")[rows, m][:, None] for m, _ in self._mocaps),
                np.empty((len(rows), 0, 3)),
            ],
            axis=1,
        )
        bodies = [body for _, body in (*self._free, *self._mocaps)]
        self._state.put(rows, self._litter.lay(things, bodies, rng))

    def _start(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        model = self._sim.model
        for name in self._joints:
            joint = model.joint(name)
            value = self._state.joint(name)[rows] + rng.uniform(-far, far)
            if joint.limited[0]:
                value = np.clip(value, *joint.range)
            self._state.put(rows, {name: value})
            servo = actuators(model, (name,))[0]
            # Or the servo would pull the joint back home.
            if model.actuator_biasprm[servo, 1] != 0:
                self._state.ctrl[rows, servo] = value

    def _pose(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        shift = rng.uniform(-far, far, (2,))
        for at, _ in self._free:
            self._state.qpos[rows, at : at + 2] += shift
        for mocap, _ in self._mocaps:
            self._state.bind("mocap_pos")[rows, mocap, :2] += shift

    def _mass(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        factor = rng.uniform(1 - far, 1 + far, (self._sim.model.nbody,))
        self._scale("body_mass", rows, factor)
        self._scale("body_inertia", rows, factor[..., None])

    def _friction(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._scale("geom_friction", rows, rng.uniform(1 - far, 1 + far, (1, 1)))

    def _damping(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._scale("dof_damping", rows, rng.uniform(1 - far, 1 + far, (1,)))

    def _gravity(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._scale("opt.gravity", rows, rng.uniform(1 - far, 1 + far, (1,)))

    def _servo(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        factor = rng.uniform(1 - far, 1 + far, (1, 1))
        for name, part in (("actuator_gainprm", slice(1)), ("actuator_biasprm", slice(1, 3))):
            field = self._fields[name]
            field[rows, :, part] = field[rows, :, part] * factor

    def _scale(self, name: str, rows: NDArray[np.intp], factor: NDArray) -> None:
        field = self._fields[name]
        field[rows] = field[rows] * factor


def _field(model: mujoco.MjModel, name: str) -> NDArray:
    """Copy a field of the model, or of its options."""
    where = model.opt if name.startswith("opt.") else model
    return np.array(getattr(where, name.removeprefix("opt.")))


def _movable(
    model: mujoco.MjModel, robot: set[int]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return where free bodies are in qpos, and mocap bodies, each with its body's number."""
    free = [
        (int(model.jnt_qposadr[k]), int(model.jnt_bodyid[k]))
        for k in range(model.njnt)
        if model.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE
        and int(model.body_rootid[model.jnt_bodyid[k]]) not in robot
    ]
    mocaps = [
        (int(model.body_mocapid[body]), body)
        for body in range(model.nbody)
        if model.body_mocapid[body] >= 0 and not model.body(body).name.startswith(PREFIX)
    ]
    return free, mocaps
