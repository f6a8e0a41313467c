"""Get, set or call one attribute of one environment, here or in a worker."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from maniple.core.errors import BadConfig, NoAttribute, closest


def touch(row: Any, what: str, name: str, args: tuple, kwargs: dict, value: Any = None) -> Any:
    """Do `what` ('get', 'set' or 'call') to the attribute `name` of a row."""
    if what == "set":
        _write(row, name, value)
        return None
    try:
        found = _read(row, name)
    except AttributeError:
        known = [n for n in dir(row) if not n.startswith("_")]
        raise NoAttribute(
            f"The environments have no attribute {name!r}.{closest(name, known)} "
            f"They have: {', '.join(known)}."
        ) from None
    if what == "call" and callable(found):
        return found(*args, **kwargs)
    # A copy, as a worker process would send it: reading never changes what a row draws next.
    return copy.deepcopy(found) if isinstance(found, np.random.Generator) else found


def read_state(row: Any) -> Any:
    """Copy everything that a row needs in order to go on from this moment."""
    try:
        return _read(row, "sim_state")
    except AttributeError:
        raise BadConfig(
            "These environments cannot save or restore their state: they have no attribute "
            "'sim_state'. Tasks of 'maniple list' and ExtendedTasks on MuJoCo have one."
        ) from None


def write_state(row: Any, state: Any) -> None:
    """Bring a row back to a state."""
    # Anything can be set in a hosted environment; only one that has a state can go back to it.
    read_state(row)
    _write(row, "sim_state", state)


def counters_of(state: Any) -> dict[str, Any]:
    """Return the part of a state that tells where the row is in its episode."""
    return state.get("counters", {}) if isinstance(state, dict) else {}


# A Gymnasium environment may be wrapped: both look through the wrappers.


def _read(row: Any, name: str) -> Any:
    find = getattr(row, "get_wrapper_attr", None)
    return getattr(row, name) if find is None else find(name)


def _write(row: Any, name: str, value: Any) -> None:
    put = getattr(row, "set_wrapper_attr", None)
    setattr(row, name, value) if put is None else put(name, value)
