"""Errors that say what happened, what was found, and what to type next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any


class ManipleError(Exception):
    """A mistake of the user's or of the machine's, described in one readable line.

    Every kind is made from that line alone: Gymnasium and pickle make them again from it.
    """


class UnknownName(ManipleError, KeyError):
    """A task, robot, engine or option that does not exist."""

    def __str__(self) -> str:
        # KeyError would print the repr of its argument.
        return str(self.args[0])


class BadAction(ManipleError, ValueError):
    """An action of the wrong shape, type or range."""


class BadConfig(ManipleError, ValueError):
    """A setting that cannot be used."""


class UnknownOption(BadConfig, TypeError):
    """A keyword argument that nothing takes; a TypeError, by which libraries probe for options."""


class BadModel(ManipleError, ValueError):
    """An MJCF model that is missing or does not compile."""


class NoAttribute(BadConfig, AttributeError):
    """An attribute that the environments do not have."""


if TYPE_CHECKING:

    class ClosedError(ManipleError, RuntimeError):
        """An environment used after close(); Gymnasium's ClosedEnvironmentError, too."""


def __getattr__(name: str) -> Any:
    """Make ClosedError when it is first used: Gymnasium takes a while to import."""
    if name != "ClosedError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gymnasium.error import ClosedEnvironmentError

    bases = (ManipleError, ClosedEnvironmentError, RuntimeError)
    doc = "An environment used after close()."
    made = type("ClosedError", bases, {"__doc__": doc, "__module__": __name__})
    # Another thread may have been quicker: there is one class.
    return globals().setdefault("ClosedError", made)


class ResetNeeded(ManipleError, RuntimeError):
    """A row stepped before its first reset, or after its end with autoreset disabled."""


class WorkerDied(ManipleError, RuntimeError):
    """A worker process that ended or hung, and could not be replaced any more."""


class MissingExtra(ManipleError, ImportError):
    """An optional package that is not installed."""


class NoDisplay(ManipleError, RuntimeError):
    """A window asked for on a machine that has no display."""


def closest(word: str, known: Iterable[str]) -> str:
    """Return ' Did you mean X?' for the nearest known word, or nothing.

    Case, dashes and a trailing version are ignored, so that 'lerobot' finds 'LeRobot-v0'.
    """
    plain = {_plain(k): k for k in known}
    hit = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return f" Did you mean {plain[hit[0]]}?" if hit else ""


def unknown(kind: str, word: str, known: Iterable[str], listing: str) -> UnknownName:
    """Make the error for a name that is in no table.

    Args:
        kind: What was looked for, as in 'task'.
        word: What was given.
        known: Every name that would have been accepted.
        listing: What to type in order to see them, as in "'maniple list'".
    """
    return UnknownName(
        f"No {kind} is named {word!r}.{closest(word, known)} List them all with {listing}."
    )


def unknown_option(name: str, known: Iterable[str], who: str = "There is") -> UnknownOption:
    """Make the error for a keyword argument that nothing takes."""
    known = list(known)
    return UnknownOption(
        f"{who} no option {name!r} (unexpected keyword argument {name!r})."
        f"{closest(name, known)} Options are: {', '.join(known)}."
    )


def _plain(word: str) -> str:
    word = word.lower().replace("-", "").replace("_", "")
    head, _, tail = word.rpartition("v")
    return head if head and tail.isdigit() else word


def one_line(error: BaseException) -> str:
    """Return what another library says in one line, without a full stop."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:200].rstrip(". ")
