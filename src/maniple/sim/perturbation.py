"""Show rows a world that is a little different: other colours, light, camera, start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, closest
from maniple.core.seeds import Draws
from maniple.sim.control.control import actuators
from maniple.sim.simulation import Simulation
from maniple.sim.state import State

KINDS: Mapping[str, str] = {
    "background": "colour of what stands still, added to red, green and blue",
    "object_colour": "colour of what is neither robot nor standing still, added likewise",
    "light": "brightness of all lamps, as a factor of 1 ± this",
    "camera": "place of every camera, metres",
    "start": "joints of the robot at the beginning, radians",
}
"""What may differ, and what its number means: each row draws within ± that number."""

USUAL: Mapping[str, float] = {
    "background": 0.2, "object_colour": 0.2, "light": 0.4, "camera": 0.02, "start": 0.1,
}  # fmt: skip
"""How far each kind goes unless a number is given."""


def check_kinds(names: Sequence[str]) -> None:
    """Refuse a kind that does not exist."""
    for name in names:
        if not isinstance(name, str):
            raise BadConfig(f"perturb has a kind {name!r:.60}; kinds are {', '.join(KINDS)}.")
        if name not in KINDS:
            raise BadConfig(
                f"perturb has no kind {name!r}.{closest(name, KINDS)} There are: "
                f"{', '.join(KINDS)}."
            )


def checked(perturb: Any) -> tuple[tuple[str, float], ...]:
    """Return kinds with how far they may go, from a table or from pairs."""
    pairs = list(perturb.items()) if isinstance(perturb, Mapping) else perturb
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise BadConfig(f"perturb is {perturb!r:.60}; it is a table, as in {{'light': 0.4}}.")
    found = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise BadConfig(f"perturb holds {pair!r:.60}; it takes kinds with a number each.")
        kind, far = pair
        check_kinds([kind])
        is_number = isinstance(far, (int, float, np.integer, np.floating))
        if not is_number or isinstance(far, bool) or not (np.isfinite(far) and far >= 0):
            raise BadConfig(f"perturb {kind!r} is {far!r:.60}; it must be a number, 0 or larger.")
        found.append((str(kind), float(far)))
    return tuple(found)


class Perturber:
    """Draws anew for every row that begins an episode; the same seed brings the same world."""

    def __init__(
        self, sim: Simulation, state: State, joints: Sequence[str], how: Mapping[str, float]
    ) -> None:
        """Prepare rows.

        Args:
            joints: All joints of the robot.
            how: How far each kind may go.
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
        needed = {"background": ("geom_rgba",), "object_colour": ("geom_rgba",),
                  "light": ("light_ambient", "light_diffuse"), "camera": ("cam_pos",),
                  "start": ()}  # fmt: skip
        names = dict.fromkeys(name for kind in how for name in needed[kind])
        self._nominal = {name: getattr(model, name).copy() for name in names}
        self._fields = {name: sim.expand(name) for name in names}

    @property
    def changes_looks(self) -> bool:
        """Whether rows have fields of their own that renderers must look at."""
        return bool(self._fields)

    def draw(self, rows: NDArray[np.intp], rng: Draws) -> None:
        """Give rows that begin an episode their own world."""
        for kind, far in self._how.items():
            getattr(self, f"_{kind}")(rows, rng, far)

    def _background(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._tint(rows, rng, far, "background")

    def _object_colour(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        self._tint(rows, rng, far, "object_colour")

    def _tint(self, rows: NDArray[np.intp], rng: Draws, far: float, kind: str) -> None:
        geoms = self._geoms[kind]
        tint = rng.uniform(-far, far, (1, 3))
        colours = self._nominal["geom_rgba"][geoms][None, :, :3] + tint
        self._fields["geom_rgba"][rows[:, None], geoms, :3] = np.clip(colours, 0.0, 1.0)

    def _light(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        factor = rng.uniform(1 - far, 1 + far, (1, 1))
        for name in ("light_ambient", "light_diffuse"):
            self._fields[name][rows] = np.clip(self._nominal[name][None] * factor, 0.0, 1.0)

    def _camera(self, rows: NDArray[np.intp], rng: Draws, far: float) -> None:
        nominal = self._nominal["cam_pos"]
        self._fields["cam_pos"][rows] = nominal[None] + rng.uniform(-far, far, nominal.shape)

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
