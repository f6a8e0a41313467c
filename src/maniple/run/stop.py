"""Decide when a run ends; under torchrun all ranks decide together."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

REASONS = ("", "steps", "updates", "minutes", "success", "asked")
"""Why a run ends. Where ranks have different reasons, the last of them in this order counts."""
IMPATIENT_S = 1.0
"""A second signal within this time is torchrun repeating the first one."""


class Stop:
    """Ends a run after so many steps, updates or minutes, or because somebody asked."""

    def __init__(
        self,
        max_steps: int | None = None,
        max_updates: int | None = None,
        max_minutes: float | None = None,
    ) -> None:
        self.max_steps, self.max_updates = max_steps, max_updates
        self.max_minutes = max_minutes
        self._deadline: float | None = None
        self._asked_at: float | None = None
        self._has_succeeded = False

    def begin(self) -> None:
        """Start the clock: what came before, such as making demonstrations, does not count."""
        if self.max_minutes is not None:
            self._deadline = monotonic() + 60 * self.max_minutes

    def ask(self) -> None:
        """End after the present step."""
        self._asked_at = self._asked_at or monotonic()

    def succeed(self) -> None:
        """End because the wanted success rate was reached."""
        self._has_succeeded = True

    def reason(self, steps: int, updates: int = 0) -> str:
        """Return why this rank would end now; empty: it would go on."""
        holds = {
            "asked": self._asked_at is not None,
            "success": self._has_succeeded,
            "minutes": self._deadline is not None and monotonic() > self._deadline,
            "updates": self.max_updates is not None and updates >= self.max_updates,
            "steps": self.max_steps is not None and steps >= self.max_steps,
        }
        return next((name for name, is_so in holds.items() if is_so), "")

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let the first Ctrl-C or SIGTERM end the run in good order; a later one is immediate."""

        def handle(number: int, frame: Any) -> None:
            if self._asked_at is not None and monotonic() - self._asked_at > IMPATIENT_S:
                raise KeyboardInterrupt
            self.ask()

        old = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)
