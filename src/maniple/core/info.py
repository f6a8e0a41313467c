"""Turn the extra arrays of a step into Gymnasium's info dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.block import Block

SUCCESS, IS_SUCCESS = "success", "is_success"
"""Our word, and the one that SERL, LeRobot and Stable-Baselines3 look for."""
_NUMBERS = (bool, int, float, np.number, np.bool_)


def row_info(extras: Mapping[str, NDArray]) -> dict[str, Any]:
    """Return one environment's info; 'terms.near' becomes info["terms"]["near"]."""
    info: dict[str, Any] = {}
    for name, array in extras.items():
        head, _, tail = name.partition(".")
        value = array.item() if array.ndim == 0 else array
        if tail:
            info.setdefault(head, {})[tail] = value
        else:
            info[head] = value
    if SUCCESS in info:
        info[IS_SUCCESS] = info[SUCCESS]
    return info


def batch_info(extras: Block, rows: NDArray[np.bool_]) -> dict[str, Any]:
    """Return Gymnasium's batched info: every key beside a mask of the rows that have it."""
    info: dict[str, Any] = {}
    if not extras.layout:
        return info
    for name, array in extras.copy().items():
        head, _, tail = name.partition(".")
        if tail:
            inner = info.setdefault(head, {})
            inner[tail], inner[f"_{tail}"] = array, rows
        else:
            info[head] = array
        info[f"_{head}"] = rows
    if SUCCESS in info:
        info[IS_SUCCESS], info[f"_{IS_SUCCESS}"] = info[SUCCESS], rows
    return info


def add_row_infos(
    info: dict[str, Any], row_infos: Mapping[int, Mapping[str, Any]], num_envs: int
) -> None:
    """Add the infos of single rows to a batched info, as Gymnasium lays them out.

    Every value arrives as it was: where the kinds of the rows differ, the array is one of objects.
    """
    by_key: dict[str, dict[int, Any]] = {}
    for row, said in row_infos.items():
        for key, value in said.items():
            found = by_key.get(key)
            if found is None:
                by_key[key] = {row: value}
            else:
                found[row] = value
    for key, values in by_key.items():
        old, mask = info.get(key), np.zeros(num_envs, np.bool_)
        if (known := info.get(f"_{key}")) is not None:
            mask[:] = known
        if _all_dicts(values) and (old is None or isinstance(old, dict)):
            inner = info.setdefault(key, {})
            add_row_infos(inner, values, num_envs)
        else:
            info[key] = _put(_as_array(old, mask), values, num_envs)
        mask[list(values)] = True
        info[f"_{key}"] = mask


def _all_dicts(values: dict[int, Any]) -> bool:
    return all(isinstance(value, dict) for value in values.values())


def _put(array: NDArray | None, values: dict[int, Any], num_envs: int) -> NDArray:
    """Write the values of rows into an array, or into another one that has room for them."""
    for row, value in values.items():
        if array is None:
            array = _empty(value, num_envs)
        if array.dtype != object and not _fits(array, value):
            array = _widened(array, value)
        array[row] = value
    assert array is not None
    return array


def _empty(value: Any, num_envs: int) -> NDArray:
    if isinstance(value, np.ndarray):
        return np.zeros((num_envs, *value.shape), value.dtype)
    if isinstance(value, _NUMBERS):
        try:
            return np.zeros(num_envs, np.asarray(value).dtype)
        except OverflowError:
            pass
    return np.full(num_envs, None, object)


def _fits(array: NDArray, value: Any) -> bool:
    kind = type(value)
    if kind is float:
        return array.dtype == np.float64 and array.ndim == 1
    if kind is bool:
        return array.dtype == np.bool_ and array.ndim == 1
    if kind is int:
        return array.dtype == np.int64 and array.ndim == 1 and -(2**63) <= value < 2**63
    if isinstance(value, (np.ndarray, np.number, np.bool_)):
        return value.dtype == array.dtype and value.shape == array.shape[1:]
    return False


def _widened(array: NDArray, value: Any) -> NDArray:
    """Return an array of the same numbers that a value can be written to as it is."""
    if isinstance(value, (np.ndarray, *_NUMBERS)):
        given = np.asarray(value)
        # Of one kind, as float32 and float64 are: no number changes.
        if given.shape == array.shape[1:] and given.dtype.kind == array.dtype.kind in "biufcSU":
            return array.astype(np.result_type(array.dtype, given.dtype))
    objects = np.full(len(array), None, object)
    for row, old in enumerate(array):
        objects[row] = old if isinstance(old, np.ndarray) else old.item()
    return objects


def _as_array(old: Any, mask: NDArray[np.bool_]) -> NDArray | None:
    """Return what a batched info says of a key as an array that may be written to."""
    if old is None:
        return None
    if not isinstance(old, dict):
        return np.array(old)
    objects = np.full(len(mask), None, object)
    for row in np.flatnonzero(mask).tolist():
        objects[row] = _row_of(old, row)
    return objects


def _row_of(info: dict[str, Any], row: int) -> dict[str, Any]:
    """Return what a batched info says of one row."""
    return {
        key: _row_of(value, row) if isinstance(value, dict) else value[row]
        for key, value in info.items()
        if f"_{key}" in info and info[f"_{key}"][row]
    }
