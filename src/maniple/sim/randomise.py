"""Vary masses, friction, damping and colours from episode to episode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maniple.core.seeds import Draws
from maniple.sim.simulation import Simulation


@dataclass(frozen=True)
class Randomisation:
    """How far model fields may move from their nominal values; factors are 1 ± the number."""

    mass: float = 0.3
    friction: float = 0.3
    damping: float = 0.3
    colour: float = 0.15
    """Added to red, green and blue of every geom, ± this much."""


class Randomiser:
    """Draws model fields for rows that begin an episode."""

    def __init__(self, sim: Simulation, how: Randomisation) -> None:
        model = sim.model
        self._sim = sim
        self._how = how
        self._nominal = {
            name: getattr(model, name).copy()
            for name in ("body_mass", "body_inertia", "geom_friction", "dof_damping", "geom_rgba")
        }
        self._fields = {name: sim.expand(name) for name in self._nominal}

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the model fields that are drawn."""
        return tuple(self._fields)

    def draw(self, rows: NDArray[np.intp], rng: Draws) -> None:
        """Give `rows` new masses, friction, damping and colours."""
        how, nominal = self._how, self._nominal
        bodies, geoms = len(nominal["body_mass"]), len(nominal["geom_rgba"])
        mass = rng.uniform(1 - how.mass, 1 + how.mass, (bodies,))
        self._fields["body_mass"][rows] = nominal["body_mass"] * mass
        self._fields["body_inertia"][rows] = nominal["body_inertia"] * mass[..., None]
        friction = rng.uniform(1 - how.friction, 1 + how.friction, (geoms, 1))
        self._fields["geom_friction"][rows] = nominal["geom_friction"] * friction
        damping = rng.uniform(1 - how.damping, 1 + how.damping, nominal["dof_damping"].shape)
        self._fields["dof_damping"][rows] = nominal["dof_damping"] * damping
        colour = nominal["geom_rgba"] + 0.0
        tint = rng.uniform(-how.colour, how.colour, (geoms, 3))
        drawn = np.repeat(colour[None], len(rows), axis=0)
        drawn[..., :3] = np.clip(drawn[..., :3] + tint, 0.0, 1.0)
        self._fields["geom_rgba"][rows] = drawn
        self._sim.batch.set_const(rows)

    def row(self, row: int) -> dict[str, NDArray]:
        """Copy one row's fields, for `env.sim_state`."""
        return {name: field[row].copy() for name, field in self._fields.items()}

    def set_row(self, row: int, fields: dict[str, NDArray]) -> None:
        """Put one row's fields back."""
        for name, value in fields.items():
            self._fields[name][row] = value
        self._sim.batch.set_const(np.array([row]))
