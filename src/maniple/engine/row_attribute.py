"""Get, set or call one attribute of one environment, here or in a worker."""

from __future__ import annotations

from typing import Any

from maniple.core.errors import BadConfig, closest


def touch(row: Any, what: str, name: str, args: tuple, kwargs: dict, value: Any = None) -> Any:
    """Do `what` ('get', 'set' or 'call') to the attribute `name` of a row."""
    # A Gymnasium environment may be wrapped: look through the wrappers.
    read = getattr(row, "get_wrapper_attr", None) or (lambda n: getattr(row, n))
    write = getattr(row, "set_wrapper_attr", None) or (lambda n, v: setattr(row, n, v))
    if what == "set":
        write(name, value)
        return None
    try:
        found = read(name)
    except AttributeError:
        known = [n for n in dir(row) if not n.startswith("_")]
        raise BadConfig(
            f"The environments have no attribute {name!r}.{closest(name, known)} "
            f"They have: {', '.join(known)}."
        ) from None
    return found(*args, **kwargs) if what == "call" and callable(found) else found
