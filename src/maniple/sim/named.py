"""Arrays of a model and of its data, indexed by name as dm_control's `physics.named` does it."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import UnknownName, closest

OWNERS: dict[str, str] = {
    "body": "body", "geom": "geom", "site": "site", "cam": "camera", "light": "light",
    "jnt": "joint", "dof": "dof", "actuator": "actuator", "sensor": "sensor", "ten": "tendon",
    "tendon": "tendon", "eq": "equality", "mat": "material", "tex": "texture", "key": "key",
}  # fmt: skip
"""What the rows of an array are, by the first word of its name, as in geom_xpos."""
OTHERS: dict[str, str] = {
    "qpos": "qpos", "qpos0": "qpos", "qpos_spring": "qpos", "qvel": "dof", "qacc": "dof",
    "qacc_warmstart": "dof", "ctrl": "actuator", "act": "actuator", "sensordata": "sensordata",
    "xpos": "body", "xquat": "body", "xmat": "body", "xipos": "body", "ximat": "body",
    "cvel": "body", "cacc": "body", "cfrc_int": "body", "cfrc_ext": "body", "xfrc_applied": "body",
    "subtree_com": "body", "subtree_linvel": "body", "subtree_angmom": "body",
    "mocap_pos": "mocap", "mocap_quat": "mocap",
}  # fmt: skip
COLUMNS = {"pos": "xyz", "com": "xyz", "linvel": "xyz", "angmom": "xyz", "dir": "xyz",
           "quat": "wxyz", "rgba": "rgba"}  # fmt: skip
"""Names of columns, by how an array's name ends."""


COUNTS = {
    "body": "nbody", "geom": "ngeom", "site": "nsite", "camera": "ncam", "light": "nlight",
    "joint": "njnt", "actuator": "nu", "sensor": "nsensor", "tendon": "ntendon",
    "equality": "neq", "material": "nmat", "texture": "ntex", "key": "nkey",
}  # fmt: skip


class Named:
    """Gives `data` and `model`, whose arrays take names."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model = NamedStruct(model, model)
        self.data = NamedStruct(model, data)


class NamedStruct:
    """A model or data whose arrays are looked up by name; all else is MuJoCo's own."""

    def __init__(self, model: mujoco.MjModel, struct: Any) -> None:
        self._model, self._struct = model, struct

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._struct, name)
        kind = OTHERS.get(name) or OWNERS.get(name.partition("_")[0])
        if name.startswith("qfrc_"):
            kind = "dof"
        if isinstance(found, np.ndarray) and kind is not None:
            return NamedArray(self._model, name, found, kind)
        return found


class NamedArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose rows have names: array["tip"], array["tip", "z"], array[["a", "b"]].

    Everything else that an array can do it does as one.
    """

    def __init__(self, model: mujoco.MjModel, name: str, array: NDArray, kind: str) -> None:
        self._model, self._name, self._array, self._kind = model, name, array, kind

    def __getitem__(self, key: Any) -> Any:
        return self._array[self._place(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[self._place(key)] = value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        return np.array(self._array, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [i._array if isinstance(i, NamedArray) else i for i in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)

    def __len__(self) -> int:
        return len(self._array)

    def __repr__(self) -> str:
        return f"{self._name}, by {self._kind}: {self._array!r}"

    def _place(self, key: Any) -> Any:
        row, column = key if isinstance(key, tuple) and len(key) == 2 else (key, None)
        place = self._rows(row)
        if column is None:
            return place
        columns = self._columns(column)
        both_listed = isinstance(place, list) and isinstance(columns, list)
        return np.ix_(place, columns) if both_listed else (place, columns)

    def _rows(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._row(key)
        if isinstance(key, (list, tuple)) and key and all(isinstance(k, str) for k in key):
            found = [self._row(name) for name in key]
            return [
                at for one in found for at in (_listed(one) if not isinstance(one, int) else [one])
            ]
        return key

    def _row(self, name: str) -> int | slice:
        model, kind = self._model, self._kind
        try:
            if kind in ("qpos", "dof"):
                joint = model.joint(name).id
                starts = model.jnt_qposadr if kind == "qpos" else model.jnt_dofadr
                total = model.nq if kind == "qpos" else model.nv
                return _span(int(starts[joint]), starts, total)
            if kind == "sensordata":
                sensor = model.sensor(name)
                start, size = int(sensor.adr[0]), int(sensor.dim[0])
                return slice(start, start + size)
            if kind == "mocap":
                at = int(model.body(name).mocapid[0])
                if at < 0:
                    raise UnknownName(f"The body {name!r} is not a mocap body.")
                return at
            return int(getattr(model, kind)(name).id)
        except UnknownName:
            raise
        except KeyError:
            known = self._names()
            raise UnknownName(
                f"No {kind} is named {name!r}.{closest(name, known)} There are: {', '.join(known)}."
            ) from None

    def _names(self) -> list[str]:
        owner = {"qpos": "joint", "dof": "joint", "sensordata": "sensor", "mocap": "body"}
        kind = owner.get(self._kind, self._kind)
        code = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
        count = getattr(self._model, COUNTS[kind])
        names = (mujoco.mj_id2name(self._model, code, i) for i in range(count))
        return [name for name in names if name]

    def _columns(self, key: Any) -> Any:
        if isinstance(key, list):
            return [self._columns(one) for one in key]
        if not isinstance(key, str):
            return key
        names = next((n for end, n in COLUMNS.items() if self._name.endswith(end)), "")
        if len(key) != 1 or key not in names:
            raise UnknownName(f"{self._name} has no column {key!r}; use a number.")
        return names.index(key)


def _span(start: int, starts: NDArray, total: int) -> int | slice:
    """One number of a hinge or slide joint, a slice of a ball or free joint."""
    later = [int(s) for s in starts if s > start]
    stop = min(later, default=total)
    return start if stop - start == 1 else slice(start, stop)


def _listed(part: slice) -> list[int]:
    return list(range(part.start, part.stop))
