"""maniple train sac."""

from __future__ import annotations

from collections.abc import Sequence

from maniple.cli.train.run import Options, options_for, run

__all__ = ["Options", "defaults", "run"]


def defaults(words: Sequence[str]) -> Options:
    """Return the settings that are known to work for the task in `words`."""
    return options_for("sac", words)
