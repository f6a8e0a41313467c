"""Give a task named views of its rows: points, joints and velocities as live arrays."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import unknown
from maniple.core.quick import squared_norm
from maniple.sim.simulation import Simulation
from maniple.sim.userdata import find_note


class State:
    """Named views of a batch, the env axis first. Read them; only `put` writes."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.model = sim.model
        self.qpos = sim.bind("qpos")
        self.qvel = sim.bind("qvel")
        self.ctrl = sim.bind("ctrl")
        self._fields: dict[str, NDArray] = {}
        self._points: dict[str, NDArray] = {}
        self._joints: dict[str, tuple[NDArray, NDArray]] = {}

    @property
    def rows(self) -> int:
        """How many environments there are."""
        return self._sim.rows

    def bind(self, field: str) -> NDArray:
        """Return any MjData field, (rows, ...)."""
        found = self._fields.get(field)
        if found is None:
            found = self._fields[field] = self._sim.bind(field)
        return found

    def pos(self, name: str) -> NDArray:
        """World position of a site or body, (rows, 3), metres."""
        found = self._points.get(name)
        if found is None:
            found = self._points[name] = self._find_point(name)
        return found

    def quat(self, body: str) -> NDArray:
        """World orientation of a body, (rows, 4), w x y z."""
        return self.bind("xquat")[:, self._body(body)]

    def joint(self, name: str) -> NDArray:
        """Position of a hinge or slide joint, (rows,), rad or metres."""
        return self._joint(name)[0]

    def joint_vel(self, name: str) -> NDArray:
        """Velocity of a hinge or slide joint, (rows,)."""
        return self._joint(name)[1]

    def note(self, name: str) -> NDArray:
        """What rows remember of their episode, (rows,), or (rows, size) if it is more."""
        found = self._fields.get("note." + name)
        if found is None:
            at = find_note(self.model, name)
            if at is None:
                raise unknown("note", name, self._names(), "State.model")
            numbers = self.bind("userdata")
            found = numbers[:, at.start] if at.stop - at.start == 1 else numbers[:, at]
            self._fields["note." + name] = found
        return found

    def mat(self, name: str) -> NDArray:
        """World orientation of a site or body, (rows, 3, 3)."""
        found = self._fields.get("mat." + name)
        if found is None:
            site = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, name)
            flat = self.bind("site_xmat")[:, site] if site >= 0 else None
            flat = self.bind("xmat")[:, self._body(name)] if flat is None else flat
            found = self._fields["mat." + name] = flat.reshape(-1, 3, 3, copy=False)
        return found

    def expand(self, field: str) -> NDArray:
        """Give a model field a value per row, (rows, ...)."""
        return self._sim.expand(field)

    def refresh(self, rows: NDArray[np.intp]) -> None:
        """Derive all fields of rows anew, after a constraint was switched."""
        self._sim.settle(rows)

    def vel(self, body: str) -> NDArray:
        """Linear velocity of a free body, (rows, 3), m/s, world."""
        start = self.model.joint(body).dofadr[0]
        return self.qvel[:, start : start + 3]

    def gap(self, a: str, b: str) -> NDArray:
        """Distance between two named points, (rows,), metres."""
        return norm(self.pos(a) - self.pos(b))

    def put(self, rows: NDArray[np.intp], where: dict[str, NDArray]) -> None:
        """Write initial states: name to position (3), pose (7), or joint position (1).

        A name is a mocap body, a free body, a hinge or slide joint, or a note.
        """
        for name, value in where.items():
            note = find_note(self.model, name)
            if note is not None:
                self.bind("userdata")[rows, note] = value.reshape(len(rows), note.stop - note.start)
                continue
            body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, name)
            mocap = -1 if body < 0 else int(self.model.body_mocapid[body])
            if mocap >= 0:
                self.bind("mocap_pos")[rows, mocap] = value[:, :3]
                if value.shape[1] == 7:
                    self.bind("mocap_quat")[rows, mocap] = value[:, 3:]
                continue
            start = self._joint_start(name)
            width = value.shape[1] if value.ndim == 2 else 1
            self.qpos[rows, start : start + width] = value.reshape(len(rows), width)

    def _joint_start(self, name: str) -> int:
        joint = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if joint < 0:
            raise unknown("mocap body or joint", name, self._names(), "State.model")
        return int(self.model.jnt_qposadr[joint])

    def _joint(self, name: str) -> tuple[NDArray, NDArray]:
        found = self._joints.get(name)
        if found is None:
            at = self._joint_start(name)
            dof = int(self.model.joint(name).dofadr[0])
            found = self._joints[name] = (self.qpos[:, at], self.qvel[:, dof])
        return found

    def _find_point(self, name: str) -> NDArray:
        site = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_SITE, name)
        if site >= 0:
            return self._sim.bind("site_xpos")[:, site]
        return self._sim.bind("xpos")[:, self._body(name)]

    def _body(self, name: str) -> int:
        body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, name)
        if body < 0:
            raise unknown("site or body", name, self._names(), "State.model")
        return body

    def _names(self) -> list[str]:
        model = self.model
        names = [model.site(i).name for i in range(model.nsite)]
        names += [model.body(i).name for i in range(model.nbody)]
        return names + [model.joint(i).name for i in range(model.njnt)]


def norm(vectors: NDArray) -> NDArray:
    """Length of vectors along the last axis."""
    return np.sqrt(squared_norm(vectors))
