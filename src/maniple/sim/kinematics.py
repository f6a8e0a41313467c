"""Compute where everything is, for rows whose physics does not store it."""

from __future__ import annotations

import copy

import mujoco
from mujoco.batch import Batch
from numpy.typing import NDArray

PLACES = frozenset(
    {
        *("xpos", "xquat", "xmat", "xipos", "ximat"),
        *("geom_xpos", "geom_xmat", "site_xpos", "site_xmat"),
        *("cam_xpos", "cam_xmat", "light_xpos", "light_xdir"),
    }
)
"""Fields of MjData that follow from joint positions and mocap bodies alone."""

SHAPES = frozenset(
    {
        *("body_pos", "body_quat", "body_ipos", "body_iquat", "jnt_pos", "jnt_axis", "qpos0"),
        *("geom_pos", "geom_quat", "site_pos", "site_quat"),
        *("cam_pos", "cam_quat", "light_pos", "light_dir"),
        *("body_sameframe", "geom_sameframe", "site_sameframe"),
    }
)
"""Fields of MjModel that they depend on besides."""

_POSITIONS = mujoco.mjtStage.mjSTAGE_POS.value


class Kinematics:
    """A batch of the same model without contacts and forces, which follows another batch."""

    def __init__(self, followed: Batch, model: mujoco.MjModel) -> None:
        still = copy.copy(model)
        off = mujoco.mjtDisableBit
        for flag in (off.mjDSBL_CONTACT, off.mjDSBL_CONSTRAINT, off.mjDSBL_SENSOR):
            still.opt.disableflags |= int(flag)
        self._batch = Batch(still, followed.nsim, nthread=followed.nthread)
        names = ["qpos", *(("mocap_pos", "mocap_quat") if model.nmocap else ())]
        self._pairs = [(self._batch.bind(name), followed.bind(name)) for name in names]
        self._bound: dict[str, NDArray] = {}

    def bind(self, field: str) -> NDArray:
        """Return a live array over one of PLACES."""
        if field not in self._bound:
            self._bound[field] = self._batch.bind(field)
            self.follow()
        return self._bound[field]

    def follow(self, rows: NDArray | None = None) -> None:
        """Bring rows (a mask or numbers; None: all) up to date."""
        at = slice(None) if rows is None else rows
        for mine, theirs in self._pairs:
            mine[at] = theirs[at]
        self._batch.forward(rows, _POSITIONS)
