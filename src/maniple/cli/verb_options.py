"""Find the options of a command in its module."""

from __future__ import annotations

from types import ModuleType


def options_of(module: ModuleType, verb: str) -> type:
    """Return the class of a verb's options: its module may serve several verbs, each with its own.

    Such a module has `options_of(verb)`; others have one class, `Options`.
    """
    return module.options_of(verb) if hasattr(module, "options_of") else module.Options
