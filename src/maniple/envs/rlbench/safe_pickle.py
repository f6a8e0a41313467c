"""Read a pickle as data, calling nothing that it names.

RLBench stores demonstrations as pickles of its own classes. Python's reader would import and call
whatever a file asks for; this one only writes down what was asked.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig

_MARK = object()


@dataclass(eq=False)
class Thing:
    """An object of some class: its name, what it was made from, and what was put into it."""

    name: str
    args: tuple = ()
    state: Any = None
    items: list = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__.get("state")
        if isinstance(state, dict) and name in state:
            return state[name]
        raise AttributeError(name)


def read_pickle(data: bytes) -> Any:
    """Return what a pickle describes: plain values, numpy arrays, and Things for all the rest.

    Raises:
        BadConfig: It is torn, or of a kind that demonstrations are not.
    """
    try:
        return _tidy(_Machine().run(data), {})
    except BadConfig:
        raise
    except Exception as error:
        raise BadConfig(f"This is no pickle that can be read: {error!r}.") from None


class _Machine:
    """A pickle's stack and memo, without the power to call."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return self._stack.pop()
            step = getattr(self, f"_{opcode.name.lower()}", None)
            if step is not None:
                step(argument)
            elif opcode.name in _VALUES:
                self._stack.append(_VALUES[opcode.name])
            elif opcode.name in _PUSHES:
                self._stack.append(argument)
            elif opcode.name in _MAKES:
                self._stack.append(_MAKES[opcode.name]())
            elif opcode.name not in _SKIPS:
                raise BadConfig(f"The pickle has the instruction {opcode.name}, which is not read.")
        raise BadConfig("The pickle ends before its end.")

    def _to_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
        found = self._stack[at + 1 :]
        del self._stack[at:]
        return found

    def _mark(self, _: Any) -> None:
        self._stack.append(_MARK)

    def _pop(self, _: Any) -> None:
        self._stack.pop()

    def _pop_mark(self, _: Any) -> None:
        self._to_mark()

    def _dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def _memoize(self, _: Any) -> None:
        self._memo[len(self._memo)] = self._stack[-1]

    def _put(self, at: int) -> None:
        self._memo[at] = self._stack[-1]

    _binput = _long_binput = _put

    def _get(self, at: int) -> None:
        self._stack.append(self._memo[at])

    _binget = _long_binget = _get

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._to_mark()))

    def _tuple1(self, _: Any) -> None:
        self._stack[-1:] = [(self._stack[-1],)]

    def _tuple2(self, _: Any) -> None:
        self._stack[-2:] = [tuple(self._stack[-2:])]

    def _tuple3(self, _: Any) -> None:
        self._stack[-3:] = [tuple(self._stack[-3:])]

    def _list(self, _: Any) -> None:
        self._stack.append(self._to_mark())

    def _dict(self, _: Any) -> None:
        found = self._to_mark()
        self._stack.append(dict(zip(found[::2], found[1::2], strict=True)))

    def _append(self, _: Any) -> None:
        value = self._stack.pop()
        _items(self._stack[-1]).append(value)

    def _appends(self, _: Any) -> None:
        values = self._to_mark()
        _items(self._stack[-1]).extend(values)

    def _setitem(self, _: Any) -> None:
        key, value = self._stack[-2:]
        del self._stack[-2:]
        self._stack[-1][key] = value

    def _setitems(self, _: Any) -> None:
        found = self._to_mark()
        self._stack[-1].update(zip(found[::2], found[1::2], strict=True))

    def _global(self, name: str) -> None:
        self._stack.append(Thing(name.replace(" ", ".")))

    def _stack_global(self, _: Any) -> None:
        module, name = self._stack[-2:]
        self._stack[-2:] = [Thing(f"{module}.{name}")]

    def _reduce(self, _: Any) -> None:
        maker, args = self._stack[-2:]
        self._stack[-2:] = [_made(maker, args)]

    _newobj = _reduce

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        self._stack[-1].state = state


_MAKES = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_PUSHES = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
_SKIPS = {"PROTO", "FRAME"}
_VALUES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


def _made(maker: Any, args: Any) -> Thing:
    name = maker.name if isinstance(maker, Thing) else "?"
    return Thing(name, tuple(args) if isinstance(args, tuple) else (args,))


def _items(target: Any) -> list:
    return target.items if isinstance(target, Thing) else target


def _tidy(value: Any, done: dict[int, Any]) -> Any:
    """Turn what stands for numpy's own into arrays and numbers."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, list):
        done[id(value)] = out = []
        out.extend(_tidy(v, done) for v in value)
        return out
    if isinstance(value, dict):
        done[id(value)] = out = {}
        out.update((k, _tidy(v, done)) for k, v in value.items())
        return out
    if isinstance(value, tuple):
        # Kept as well: tuples of the same tuple, a hundred deep, would never end.
        done[id(value)] = out = tuple(_tidy(v, done) for v in value)
        return out
    if not isinstance(value, Thing):
        return value
    last = value.name.rpartition(".")[2]
    is_numpy = value.name.split(".")[0] == "numpy"
    if is_numpy and last == "_reconstruct":
        found = _array(value.state)
    elif is_numpy and last == "_frombuffer":
        raw, kind, shape, order = value.args
        found = np.frombuffer(_bytes(raw), _dtype(kind)).reshape(shape, order=order).copy()
    elif is_numpy and last == "scalar":
        found = np.frombuffer(_bytes(value.args[1]), _dtype(value.args[0]))[0]
    else:
        done[id(value)] = value
        value.state = _tidy(value.state, done)
        value.args = _tidy(value.args, done)
        value.items = _tidy(value.items, done)
        return value
    done[id(value)] = found
    return found


def _array(state: Any) -> NDArray:
    """Build an array from what numpy puts into a pickle: version, shape, type, order, bytes."""
    _, shape, kind, is_fortran, raw = state
    array = np.frombuffer(_bytes(raw), _dtype(kind))
    return array.reshape(shape, order="F" if is_fortran else "C").copy()


def _dtype(kind: Any) -> np.dtype:
    if not isinstance(kind, Thing) or not isinstance(kind.args[0], str):
        raise BadConfig("An array's type cannot be read.")
    order = kind.state[1] if isinstance(kind.state, tuple) else "|"
    found = np.dtype(kind.args[0])
    if found.hasobject:
        raise BadConfig("An array of Python objects is not read.")
    return found.newbyteorder(order if order in "<>" else "=")


def _bytes(raw: Any) -> bytes:
    """Return bytes, also where protocol 2 spelt them as a call."""
    if not isinstance(raw, Thing):
        return raw.encode("latin1") if isinstance(raw, str) else bytes(raw)
    last = raw.name.rpartition(".")[2]
    if last == "bytes" and not raw.args:
        return b""
    if last == "encode" and isinstance(raw.args[0], str):
        return raw.args[0].encode("latin1")
    raise BadConfig(f"The bytes of an array are a {raw.name}, which is not read.")
