"""Take nested settings and states apart into arrays and JSON, and put them together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def split(tree: Any, at: str, arrays: dict[str, NDArray]) -> Any:
    """Move every array of a tree into `arrays`, named after its place; return the rest."""
    if isinstance(tree, np.ndarray):
        assert at not in arrays, f"two arrays are named {at}"
        arrays[at] = tree
        return {"array": at}
    if isinstance(tree, dict):
        return {"dict": {key: split(value, _below(at, key), arrays) for key, value in tree.items()}}
    if isinstance(tree, (list, tuple)):
        return {"list": [split(value, _below(at, k), arrays) for k, value in enumerate(tree)]}
    return {"value": tree.item() if isinstance(tree, np.generic) else tree}


def unsplit(rest: Any, arrays: dict[str, NDArray]) -> Any:
    """Undo `split`; tuples come back as lists."""
    ((kind, content),) = rest.items()
    if kind == "array":
        return arrays[content]
    if kind == "dict":
        return {key: unsplit(value, arrays) for key, value in content.items()}
    if kind == "list":
        return [unsplit(value, arrays) for value in content]
    return content


def _below(at: str, key: object) -> str:
    return f"{at}.{key}" if at else str(key)
