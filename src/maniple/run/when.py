"""Say when something is due, instead of modulo arithmetic in the loop."""

from __future__ import annotations


class Every:
    """Due once per `period` counts; never if the period is 0."""

    def __init__(self, period: int, last: int = 0) -> None:
        self.period, self.last = period, last

    def __call__(self, count: int) -> bool:
        """Tell whether a period is over, and begin the next one if so."""
        if self.period <= 0 or count < self.last + self.period:
            return False
        self.last = count - count % self.period
        return True


class Ratio:
    """How many updates are due for the steps that were made, keeping the rest for later."""

    def __init__(self, per_step: float) -> None:
        self.per_step, self.owed = per_step, 0.0

    def __call__(self, steps: int) -> int:
        """Return the updates that `steps` more steps bring."""
        self.owed += steps * self.per_step
        due = int(self.owed)
        self.owed -= due
        return due
