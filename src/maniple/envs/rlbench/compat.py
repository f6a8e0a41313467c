"""Call what another version may have given other parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call with those options that the function has parameters for.

    RLBench 1.2.0 and the fork of PerAct differ in them.
    """
    return function(*args, **{k: v for k, v in options.items() if has_parameter(function, k)})


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Tell whether a function takes an option of that name."""
    parameters = inspect.signature(function).parameters
    return name in parameters or any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()
    )
