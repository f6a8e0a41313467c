"""Turn the extra arrays of a step into Gymnasium's info dictionaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.block import Block


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
    return info


def add_row_infos(
    info: dict[str, Any], row_infos: dict[int, dict[str, Any]], num_envs: int
) -> None:
    """Add the infos of single rows to a batched info, as Gymnasium lays them out."""
    for row, said in row_infos.items():
        for key, value in said.items():
            if isinstance(value, dict):
                inner = info.setdefault(key, {})
                add_row_infos(inner, {row: value}, num_envs)
            else:
                if key not in info:
                    info[key] = _empty(value, num_envs)
                info[key][row] = value
            mask = info.get(f"_{key}")
            mask = np.zeros(num_envs, np.bool_) if mask is None else mask.copy()
            mask[row] = True
            info[f"_{key}"] = mask


def _empty(value: Any, num_envs: int) -> NDArray:
    if isinstance(value, np.ndarray):
        return np.zeros((num_envs, *value.shape), value.dtype)
    if isinstance(value, (bool, int, float, np.number, np.bool_)):
        return np.zeros(num_envs, type(value))
    return np.full(num_envs, None, object)
