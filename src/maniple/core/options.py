"""Check what a reset is asked for, before anything moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maniple.core.errors import BadConfig, closest
from maniple.core.group import Contract


def check_options(contract: Contract, options: Mapping[str, Any]) -> None:
    """Refuse options of `reset` that are mistakes; what is nobody's business here is let through.

    Raises:
        BadConfig: A name that is nearly one of ours, or a variation that does not exist.
    """
    known = contract.reset_options
    if known is None:
        return
    takes = ("reset_mask", *known)
    for strange in sorted(str(name) for name in options if name not in known):
        if meant := closest(strange, takes):
            raise BadConfig(
                f"reset() got unknown options [{strange!r}].{meant} It takes {' and '.join(takes)}."
            )
    if options.get("variation") is not None:
        check_variation(options["variation"], contract.variations)


def check_variation(variation: Any, count: int | None) -> None:
    """Refuse a variation that does not exist; `count` is None where it is not known yet."""
    is_number = isinstance(variation, (int, np.integer)) and not isinstance(variation, bool)
    if is_number and variation >= 0 and (count is None or variation < count):
        return
    if count is None:
        raise BadConfig(f"variation is {variation!r}; give 0 or more, or None for any.")
    few = "0" if count == 1 else f"0 to {count - 1}"
    raise BadConfig(f"variation is {variation!r}; there are {count}: give {few}, or None for any.")
