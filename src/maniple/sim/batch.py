"""Step many copies of one model on MuJoCo's own threads, with no Python loop over them."""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

# Position- and velocity-dependent fields belong to the new state after every call. A persistent
# batch continues its next step from this stage, so that being current costs nothing.
CURRENT = mujoco.mjtStage.mjSTAGE_VEL.value

_WARNINGS = {
    mujoco.mjtWarning.mjWARN_BADQPOS: "a position became NaN, infinite or huge",
    mujoco.mjtWarning.mjWARN_BADQVEL: "a velocity became NaN, infinite or huge",
    mujoco.mjtWarning.mjWARN_BADQACC: "an acceleration became NaN, infinite or huge",
    mujoco.mjtWarning.mjWARN_BADCTRL: "a control became NaN or infinite",
}


class Sim:
    """The rows of one model: state in, derived fields out, both as live (rows, ...) arrays."""

    def __init__(self, model: mujoco.MjModel, rows: int, threads: int, substeps: int = 1) -> None:
        self.model = model
        self.rows = rows
        self.substeps = substeps
        self.batch = Batch(model, rows, nthread=max(1, min(threads, rows)), persistent=True)
        first = int(min(_WARNINGS, key=int))
        self._warning = self.batch.warning
        self._counters = self._warning[:, first : first + len(_WARNINGS), 1]
        self._counted = self._counters.copy()
        self._last = self._warning.tobytes()
        self._expanded: dict[str, NDArray] = {}

    def bind(self, field: str) -> NDArray:
        """Return a live array over an MjData field, as in `bind("site_xpos")`."""
        return self.batch.bind(field)

    def step(self, active: NDArray[np.bool_] | None = None, substeps: int | None = None) -> None:
        """Advance the active rows (None: all) by one control step, or some of its substeps."""
        self.batch.step(active, self.substeps if substeps is None else substeps, CURRENT)

    def clear(self, rows: NDArray[np.intp]) -> None:
        """Put rows back to the model's defaults; write their state, then `settle` them."""
        self.batch.reset(rows, stage=mujoco.mjtStage.mjSTAGE_NONE)

    def settle(self, rows: NDArray[np.intp]) -> None:
        """Bring the derived fields of rows up to date with a state that was written."""
        self.batch.forward(rows, CURRENT)

    def faults(self) -> dict[int, str]:
        """Return the rows in which MuJoCo gave up since the last call, and why.

        MuJoCo resets such a row silently in the middle of a step, so that its numbers look
        healthy: only the warning counters tell.
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
        found = self._expanded.get(field)
        if found is None:
            found = self._expanded[field] = self.batch.expand(field)
        return found

    def expanded_row(self, row: int) -> dict[str, NDArray]:
        """Copy what one row has of the expanded model fields."""
        return {name: field[row].copy() for name, field in self._expanded.items()}

    def set_expanded_row(self, row: int, fields: dict[str, NDArray]) -> None:
        """Put one row's model fields back, where they are expanded here too."""
        for name in fields.keys() & self._expanded.keys():
            self._expanded[name][row] = fields[name]

    def state(self, row: int) -> NDArray[np.float64]:
        """Copy all that MuJoCo integrates in one row: enough to go on bit for bit."""
        return self.batch.state[row].copy()

    def set_state(self, row: int, state: NDArray[np.float64]) -> None:
        """Go back to a copied state."""
        self.batch.state[row] = state
        self.settle(np.array([row]))

    def data(self, row: int, into: mujoco.MjData | None = None) -> mujoco.MjData:
        """Return one row as an MjData, for rendering."""
        return self.batch.get_data(row, into)

    def row_model(self, row: int) -> mujoco.MjModel:
        """Return one row's model, with the fields that were expanded."""
        return self.batch.get_model(row)
