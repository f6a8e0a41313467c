"""Do something when some module is imported, now or later: right after it, or around it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


def after_import(module: str, do: Callable[[], None]) -> None:
    """Call `do` once `module` is imported; at once if it is already.

    Importing gymnasium takes 0.3 s, which `maniple --help` should not wait for.
    """
    if module in sys.modules:
        do()
    else:
        sys.meta_path.insert(0, _Watch(module, do))


def around_import(module: str, enter: Callable[[], AbstractContextManager]) -> None:
    """Import `module` inside of a context, if it has not been imported yet."""
    if module not in sys.modules:
        sys.meta_path.insert(0, _Watch(module, lambda: None, enter))


class _Watch(MetaPathFinder):
    """Removes itself after the one import that it waits for."""

    def __init__(
        self,
        module: str,
        do: Callable[[], None],
        enter: Callable[[], AbstractContextManager] = nullcontext,
    ) -> None:
        self._module = module
        self._do = do
        self._enter = enter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self._do, self._enter)
        return spec


class _Then(Loader):
    """Executes a module, then the function."""

    def __init__(
        self, inner: Loader, do: Callable[[], None], enter: Callable[[], AbstractContextManager]
    ) -> None:
        self._inner = inner
        self._do = do
        self._enter = enter

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._inner.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._inner
        with self._enter():
            self._inner.exec_module(module)
        self._do()
