"""Know what the gripper holds: attached when it shuts around a thing, or held by friction alone."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.envs.panda.proximity import geoms_of, half_sizes
from maniple.sim.robots.panda import FINGERS
from maniple.sim.rotation import mat_rotate, quat_conj, quat_mul
from maniple.sim.state import State
from maniple.sim.userdata import add_note

NOTE = "held"
MARGIN_M = 0.006
"""How far from the tip a thing may be and still be between the fingers."""
STILL_M_S = 0.03


def add_grasp(spec: mujoco.MjSpec, things: tuple[str, ...], attaches: bool) -> None:
    """Let the gripper hold things of a scene."""
    add_note(spec, NOTE)
    for thing in things if attaches else ():
        weld = spec.add_equality(name=_weld(thing), active=False)
        weld.type, weld.objtype = mujoco.mjtEq.mjEQ_WELD, mujoco.mjtObj.mjOBJ_BODY
        weld.name1, weld.name2 = "hand", thing
        data = np.zeros(len(weld.data))
        data[6], data[10] = 1.0, 1.0
        weld.data = data
        weld.solref, weld.solimp = [0.01, 1.0], [0.99, 0.999, 0.001, 0.5, 2.0]


def nothing_held(s: State) -> NDArray[np.bool_]:
    """Whether the gripper is empty."""
    return s.note(NOTE) == 0


def is_held(s: State, thing: int) -> NDArray[np.bool_]:
    """Whether the gripper holds the thing with this number."""
    return s.note(NOTE) == thing + 1


class Grasp:
    """Updates, after every step, the note of what is held: 0 nothing, 1 the first thing, ..."""

    def __init__(self, s: State, things: tuple[str, ...], attaches: bool) -> None:
        model = s.model
        owned = [(geom, k) for k, name in enumerate(things) for geom in geoms_of(model, name)]
        self._geoms = np.array([geom for geom, _ in owned])
        self._owner = np.array([owner for _, owner in owned])
        self._reach = np.stack([half_sizes(model, geom) for geom, _ in owned]) + MARGIN_M
        self._bodies = np.array([model.body(name).id for name in things])
        self._hand = model.body("hand").id
        self._finger = model.actuator(FINGERS[0]).id
        self._attaches = attaches
        if attaches:
            self._welds = np.array([model.equality(_weld(name)).id for name in things])
            self._relative = s.expand("eq_data")

    def update(self, s: State, active: NDArray[np.bool_] | None) -> None:
        """Look at the fingers of the active rows."""
        is_shut = s.ctrl[:, self._finger] < 0.0
        held = s.note(NOTE)
        if self._attaches:
            released = ~is_shut & (held > 0)
            closing = is_shut & (held == 0)
        else:
            released = held > 0
            closing = is_shut
        if active is not None:
            released &= active
            closing &= active
        changed = released.any()
        if changed:
            self._release(s, np.flatnonzero(released))
        if closing.any():
            closing &= self._are_still(s)
            rows = np.flatnonzero(closing)
            if len(rows):
                self._take(s, rows)

    def _are_still(self, s: State) -> NDArray[np.bool_]:
        speed = np.abs(s.joint_vel(FINGERS[0])) + np.abs(s.joint_vel(FINGERS[1]))
        return speed < STILL_M_S

    def _release(self, s: State, rows: NDArray[np.intp]) -> None:
        s.note(NOTE)[rows] = 0
        if self._attaches:
            s.bind("eq_active")[rows[:, None], self._welds] = 0
            s.refresh(rows)

    def _take(self, s: State, rows: NDArray[np.intp]) -> None:
        pos = s.bind("geom_xpos")[rows][:, self._geoms]
        mat = s.bind("geom_xmat")[rows][:, self._geoms].reshape(len(rows), -1, 3, 3)
        back = np.swapaxes(mat, -1, -2)
        tip, across = s.pos("tip")[rows], s.mat("tip")[rows][:, :, 1]
        left = tip + across * s.joint(FINGERS[0])[rows][:, None]
        right = tip - across * s.joint(FINGERS[1])[rows][:, None]
        touched = [self._touches(back, pos, point) for point in (tip, left, right)]
        # Around a ring there is nothing between the fingers, but something at both.
        inside = touched[0] | (touched[1] & self._same(touched[2]))
        found = inside.any(1)
        if not found.any():
            return
        thing = self._owner[np.argmax(inside, axis=1)][found]
        rows = rows[found]
        s.note(NOTE)[rows] = thing + 1
        if self._attaches:
            self._attach(s, rows, thing)

    def _touches(self, back: NDArray, pos: NDArray, point: NDArray) -> NDArray[np.bool_]:
        """Whether points (n, 3) are at each shape, (n, shapes)."""
        local = np.abs(mat_rotate(back, point[:, None] - pos))
        return np.asarray((local <= self._reach).all(-1))

    def _same(self, touched: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether any shape of the same thing is touched, (n, shapes)."""
        return (touched[:, None, :] & (self._owner == self._owner[:, None])).any(-1)

    def _attach(self, s: State, rows: NDArray[np.intp], thing: NDArray[np.intp]) -> None:
        body, weld = self._bodies[thing], self._welds[thing]
        pos, quat = s.bind("xpos"), s.bind("xquat")
        hand = s.mat("hand")[rows]
        way = mat_rotate(np.swapaxes(hand, -1, -2), pos[rows, body] - pos[rows, self._hand])
        turn = quat_mul(quat_conj(quat[rows, self._hand]), quat[rows, body])
        self._relative[rows, weld, 3:6] = way
        self._relative[rows, weld, 6:10] = turn
        s.bind("eq_active")[rows, weld] = 1
        s.refresh(rows)


def _weld(thing: str) -> str:
    return f"hold.{thing}"
