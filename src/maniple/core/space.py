"""Turn layouts into Gymnasium spaces, and arbitrary spaces into layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout

BARE = "obs"
"""Name of the only array of a space that is no Dict."""


def box(spec: ArraySpec) -> spaces.Box:
    """Return the Box of one array."""
    low, high = spec.bounds()
    return spaces.Box(low, high, spec.shape, spec.dtype.type)


def dict_space(layout: Layout) -> spaces.Dict:
    """Return the Dict space of a layout."""
    return spaces.Dict({name: box(spec) for name, spec in layout.items()})


def layout_of(space: spaces.Space) -> Layout:
    """Name every array in a space; nested names are joined with '.'.

    Raises:
        BadConfig: Two arrays get the same name, or one has no fixed size.
    """
    found: dict[str, ArraySpec] = {}
    for name, spec in _leaves(space, ()):
        if name in found:
            raise BadConfig(
                f"Two parts of the space are both named {name!r}: names of nested parts are joined "
                f"with '.'. Rename the key {name!r}, or the one inside of {name.split('.')[0]!r}."
            )
        found[name] = spec
    return Layout(found)


def nest(space: spaces.Space, arrays: Mapping[str, NDArray]) -> Any:
    """Put named arrays back into the structure of their space."""
    return nester(space)(arrays)


def nester(space: spaces.Space) -> Callable[[Mapping[str, NDArray]], Any]:
    """Return the function that `nest` applies, worked out once for a space."""
    if isinstance(space, spaces.Dict) and not _is_nested(space):
        return lambda arrays: arrays
    return lambda arrays: _build(space, (), arrays)


def row_nester(space: spaces.Space) -> Callable[[Mapping[str, NDArray]], Any]:
    """Return the function that makes one environment's observation of its arrays.

    As Gymnasium's environments tell it: a Discrete is a number, not an array without axes.
    """
    numbers = [name for name, inner in _spaces(space, ()) if isinstance(inner, spaces.Discrete)]
    build = nester(space)
    if not numbers:
        return build
    return lambda arrays: build({**arrays, **{name: arrays[name][()] for name in numbers}})


def flatten(space: spaces.Space, value: Any) -> dict[str, Any]:
    """Take a value of a space apart into named arrays, as `layout_of` names them."""
    return dict(_parts(space, (), value))


def flattener(space: spaces.Space) -> Callable[[Any], Mapping[str, Any]]:
    """Return the function that `flatten` applies, worked out once for a space."""
    if isinstance(space, spaces.Dict) and not _is_nested(space):
        return lambda value: value
    if not isinstance(space, (spaces.Dict, spaces.Tuple)):
        return lambda value: {BARE: value}
    return lambda value: flatten(space, value)


def _is_nested(space: spaces.Dict) -> bool:
    return any(isinstance(inner, (spaces.Dict, spaces.Tuple)) for inner in space.values())


def _name(path: tuple[str, ...]) -> str:
    return ".".join(path) if path else BARE


def _spaces(space: spaces.Space, path: tuple[str, ...]) -> Iterator[tuple[str, spaces.Space]]:
    """Every part of a space that is no container, by name."""
    inside: Any = ()
    if isinstance(space, spaces.Dict):
        inside = space.items()
    elif isinstance(space, spaces.Tuple):
        inside = enumerate(space)
    else:
        yield _name(path), space
    for key, inner in inside:
        yield from _spaces(inner, (*path, str(key)))


def _leaves(space: spaces.Space, path: tuple[str, ...]) -> Iterator[tuple[str, ArraySpec]]:
    if isinstance(space, spaces.Dict):
        for key, inner in space.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(space, spaces.Tuple):
        for i, inner in enumerate(space):
            yield from _leaves(inner, (*path, str(i)))
    elif isinstance(space, spaces.Box):
        image = "rgb" if _is_picture(space) else None
        yield _name(path), ArraySpec(space.shape, space.dtype, space.low, space.high, image)
    elif isinstance(space, spaces.Discrete):
        start = int(space.start)
        yield _name(path), ArraySpec((), space.dtype, start, start + int(space.n) - 1)
    elif isinstance(space, spaces.MultiDiscrete):
        low = np.asarray(space.start)
        yield _name(path), ArraySpec(space.shape, space.dtype, low, low + space.nvec - 1)
    elif isinstance(space, spaces.MultiBinary):
        yield _name(path), ArraySpec(space.shape, space.dtype, 0, 1)
    else:
        raise BadConfig(
            f"{_name(path)!r} is a {type(space).__name__} space, which has no fixed-size array. "
            "Use Box, Discrete, MultiDiscrete, MultiBinary, Dict or Tuple."
        )


def _build(space: spaces.Space, path: tuple[str, ...], arrays: Mapping[str, NDArray]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _build(inner, (*path, str(key)), arrays) for key, inner in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_build(inner, (*path, str(i)), arrays) for i, inner in enumerate(space))
    return arrays[_name(path)]


def _parts(space: spaces.Space, path: tuple[str, ...], value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(space, spaces.Dict):
        for key, inner in space.items():
            yield from _parts(inner, (*path, str(key)), value[key])
    elif isinstance(space, spaces.Tuple):
        for i, inner in enumerate(space):
            yield from _parts(inner, (*path, str(i)), value[i])
    else:
        yield _name(path), value


def _is_picture(space: spaces.Box) -> bool:
    """Bytes of height x width x channels: how Gymnasium's environments show a picture."""
    return space.dtype == np.uint8 and len(space.shape) == 3 and space.shape[2] in (1, 3, 4)
