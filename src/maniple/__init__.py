"""maniple: many robot arms, stepping as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maniple.core.after_import import after_import, around_import
from maniple.version import __version__ as __version__

if TYPE_CHECKING:
    from maniple.envs.extended import ExtendedTask as ExtendedTask
    from maniple.envs.task import Task as Task
    from maniple.learn.policy import load_policy as load_policy
    from maniple.registry import expert as expert
    from maniple.registry import list_tasks as list_tasks
    from maniple.registry import make as make
    from maniple.registry import make_vec as make_vec
    from maniple.registry import register as register

_PUBLIC = {
    "make": "maniple.registry",
    "make_vec": "maniple.registry",
    "register": "maniple.registry",
    "expert": "maniple.registry",
    "list_tasks": "maniple.registry",
    "load_policy": "maniple.learn.policy",
    "Task": "maniple.envs.task",
    "ExtendedTask": "maniple.envs.extended",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used, so that the CLI starts at once."""
    import importlib

    if name not in _PUBLIC:
        raise AttributeError(f"module 'maniple' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted([*_PUBLIC, "__version__"])


def _register() -> None:
    from maniple.registry import register_all

    register_all()


def _safe_grandchildren() -> Any:
    from maniple.core.child import safe_grandchildren

    return safe_grandchildren()


# MuJoCo imports glfw, which asks a new Python for its version and has the working folder on its
# path: a file ctypes.py there would run.
around_import("glfw", _safe_grandchildren)

# gymnasium.make knows our ids after 'import maniple', in whichever order both are imported.
after_import("gymnasium", _register)
