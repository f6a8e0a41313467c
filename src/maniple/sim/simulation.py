"""Step many copies of one model on MuJoCo's own threads, with no Python loop over them."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco.batch import DATA_FIELDS, Batch
from numpy.typing import NDArray

from maniple.core.errors import BadConfig, unknown
from maniple.sim.kinematics import PLACES, SHAPES, Kinematics
from maniple.sim.mujoco_timers import stop_timers

# Position- and velocity-dependent fields belong to the new state after every call. A persistent
# batch continues its next step from this stage, so that being current costs nothing.
CURRENT = mujoco.mjtStage.mjSTAGE_VEL.value
NOTHING = mujoco.mjtStage.mjSTAGE_NONE.value

MANY = 128
"""From so many rows on what MuJoCo remembers of each, 80 kB, does not stay in the caches."""
STATE = frozenset(
    {
        *("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "qfrc_applied"),
        *("xfrc_applied", "eq_active", "mocap_pos", "mocap_quat", "userdata", "plugin_state"),
        "plastic",
    }
)
"""Fields that a row's state consists of."""
CONSTANTS_OF = frozenset({"body_mass", "body_inertia", "opt.gravity"})
"""Fields of a model from which MuJoCo derives others."""
FORCES = frozenset({"actuator_force", "qfrc_actuator"})
"""Fields that belong to the last step, not to the state after it."""

_WARNINGS = {
    mujoco.mjtWarning.mjWARN_BADQPOS: "a position became NaN, infinite or huge",
    mujoco.mjtWarning.mjWARN_BADQVEL: "a velocity became NaN, infinite or huge",
    mujoco.mjtWarning.mjWARN_BADQACC: "an acceleration became NaN, infinite or huge",
    mujoco.mjtWarning.mjWARN_BADCTRL: "a control became NaN or infinite",
}


class Simulation:
    """The rows of one model: state in, derived fields out, both as live (rows, ...) arrays.

    Many rows of single physics steps, of which only places and forces are read, are run lean: a
    row is then its state alone, and where things are is worked out after every step. The numbers
    are the same.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        rows: int,
        threads: int,
        substeps: int = 1,
        reads: tuple[str, ...] | None = None,
    ) -> None:
        """Build the rows.

        Args:
            model: Shared by all of them.
            rows: How many.
            threads: That step them, the caller's included.
            substeps: Physics steps of one control step.
            reads: The only derived fields that will be bound besides PLACES and FORCES, if that is
                known. Rows of such a Simulation all have the same shape.
        """
        self.model = model
        self.rows = rows
        self.substeps = substeps
        self._reads = None if reads is None else _announced(reads)
        # Sleeping bodies and the like need MuJoCo's memory of every row.
        is_lean = rows >= MANY and substeps == 1 and model.opt.enableflags == 0
        is_lean = is_lean and self._reads == STATE | PLACES | FORCES
        threads = max(1, min(threads, rows))
        stop_timers()
        self.batch = Batch(model, rows, nthread=threads, persistent=not is_lean)
        self._kinematics = Kinematics(self.batch, model) if is_lean else None
        for field in FORCES if is_lean else ():
            # Bound now: a force that was not copied out in its own step is lost.
            self.batch.bind(field)
        first = int(min(_WARNINGS, key=int))
        self._warning = self.batch.warning
        self._counters = self._warning[:, first : first + len(_WARNINGS), 1]
        self._counted = self._counters.copy()
        self._last = self._warning.tobytes()
        self._expanded: dict[str, NDArray] = {}

    def bind(self, field: str) -> NDArray:
        """Return a live array over an MjData field, as in `bind("site_xpos")`."""
        if self._reads is not None and field not in self._reads:
            raise BadConfig(f"The task reads {field!r} undeclared: add it to the task's `reads`.")
        if self._kinematics is not None and field in PLACES:
            return self._kinematics.bind(field)
        return self.batch.bind(field)

    def step(self, active: NDArray[np.bool_] | None = None, substeps: int | None = None) -> None:
        """Advance the active rows (None: all) by one control step, or some of its substeps."""
        count = self.substeps if substeps is None else substeps
        if self._kinematics is None:
            self.batch.step(active, count, CURRENT)
        else:
            self.batch.step(active, count, NOTHING)
            self._kinematics.follow(active)

    def clear(self, rows: NDArray[np.intp]) -> None:
        """Put rows back to the model's defaults; write their state, then `settle` them."""
        self.batch.reset(rows, stage=NOTHING)

    def settle(self, rows: NDArray[np.intp]) -> None:
        """Bring the derived fields of rows up to date with a state that was written."""
        if self._kinematics is None:
            self.batch.forward(rows, CURRENT)
        else:
            self._kinematics.follow(rows)

    def faults(self) -> dict[int, str]:
        """Return the rows in which MuJoCo gave up since the last call, and why.

        MuJoCo resets such a row silently in the middle of a step, so that its numbers look
        healthy: only the warning counters show it.
        """
        # Comparing bytes costs a tenth of any numpy reduction.
        now = self._warning.tobytes()
        if now == self._last:
            return {}
        self._last = now
        rose = self._counters > self._counted
        self._counted = self._counters.copy()
        texts = list(_WARNINGS.values())
        return {int(row): texts[int(np.argmax(rose[row]))] for row in np.flatnonzero(rose.any(1))}

    def expand(self, field: str) -> NDArray:
        """Give a model field a value per row, (rows, ...), for randomisation."""
        if self._reads is not None and field in SHAPES:
            raise BadConfig(
                f"The task changes {field!r} by row, which a task with `reads` cannot: set that to "
                "None."
            )
        found = self._expanded.get(field)
        if found is None:
            found = self._expanded[field] = self.batch.expand(field)
        return found

    def expanded(self, field: str) -> NDArray | None:
        """Return a model field's values per row, (rows, ...), or None where rows share it."""
        return self._expanded.get(field)

    def expanded_row(self, row: int) -> dict[str, NDArray]:
        """Copy what one row has of the expanded model fields."""
        return {name: field[row].copy() for name, field in self._expanded.items()}

    def set_expanded_row(self, row: int, fields: dict[str, NDArray]) -> None:
        """Put one row's model fields back, where they are expanded here too."""
        for name in fields.keys() & self._expanded.keys():
            self._expanded[name][row] = fields[name]
        self.derive_constants(np.array([row]))

    def derive_constants(self, rows: NDArray[np.intp]) -> None:
        """Let what MuJoCo derives from a model follow the fields that rows have of their own."""
        if not CONSTANTS_OF.isdisjoint(self._expanded):
            self.batch.set_const(rows)

    def state(self, row: int) -> NDArray[np.float64]:
        """Copy all that MuJoCo integrates in one row: enough to go on bit for bit."""
        return self.batch.state[row].copy()

    def set_state(self, row: int, state: NDArray[np.float64]) -> None:
        """Go back to a copied state."""
        self.batch.state[row] = state
        self.settle(np.array([row]))

    def pull(self, row: int, forces: NDArray[np.float64]) -> None:
        """Pull at the bodies of one row, (bodies, 6), until told otherwise."""
        self.batch.bind("xfrc_applied")[row] = forces

    def data(self, row: int, into: mujoco.MjData | None = None) -> mujoco.MjData:
        """Return one row as an MjData, for rendering."""
        data = self.batch.get_data(row, into)
        if self._kinematics is not None:
            mujoco.mj_fwdPosition(self.row_model(row) if self._expanded else self.model, data)
        return data

    def row_model(self, row: int) -> mujoco.MjModel:
        """Return one row's model, with the fields that were expanded."""
        return self.batch.get_model(row)


def _announced(reads: tuple[str, ...]) -> frozenset[str]:
    """Return every field that may be bound by a task that names the others."""
    for field in reads:
        if field not in DATA_FIELDS:
            raise unknown("field of MjData", field, DATA_FIELDS, "mujoco.batch.DATA_FIELDS")
    return STATE | PLACES | FORCES | set(reads)
