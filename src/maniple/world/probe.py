"""Guard a model against forgetting, on a frozen set of episodes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.data.sequence_buffer import SequenceBuffer
from maniple.run.ranks import Ranks
from maniple.world.quality import measure
from maniple.world.updater import Updater

log = logging.getLogger("maniple.world")
STRETCHES = 48


class Probe:
    """Measures on episodes that never change, and rolls weights back when quality falls."""

    def __init__(self, held_out: SequenceBuffer, guard_db: float, ranks: Ranks) -> None:
        self._held_out, self._guard_db, self._ranks = held_out, guard_db, ranks
        self.best_db: float | None = None
        self.rollbacks = 0
        self._good: dict[str, NDArray] = {}
        self._db = float("nan")

    def look(self, updater: Updater) -> bool:
        """Measure; return whether the model was rolled back to when it was better."""
        quality = measure(updater.model, self._held_out, STRETCHES, (1, 5))
        # Rank 0's figure decides for all: pictures need not round alike everywhere.
        mine = np.array([np.mean([row.moving for row in quality.horizons])], np.float64)
        db = float(self._ranks.total(mine if self._ranks.is_main else 0 * mine)[0])
        self._db = db
        if self.best_db is None or db >= self.best_db:
            self.best_db, self._good = db, updater.weights()
            return False
        if not self._guard_db or db >= self.best_db - self._guard_db:
            return False
        log.warning("the probe set fell from %.2f to %.2f dB: rolled back", self.best_db, db)
        updater.load_weights(self._good)
        updater.forget_momentum()
        self.rollbacks += 1
        self._db = self.best_db
        return True

    def metrics(self) -> dict[str, float]:
        """The last measurement."""
        best = float("nan") if self.best_db is None else self.best_db
        return {"probe/db": self._db, "probe/best_db": best, "probe/rollbacks": self.rollbacks}

    def state(self) -> dict[str, Any]:
        """Return everything that going on needs."""
        return {"best_db": self.best_db, "db": self._db if np.isfinite(self._db) else None,
                "rollbacks": self.rollbacks, "good": self._good}  # fmt: skip

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.best_db, self.rollbacks = state["best_db"], state["rollbacks"]
        self._db = float("nan") if state["db"] is None else state["db"]
        self._good = dict(state["good"])
