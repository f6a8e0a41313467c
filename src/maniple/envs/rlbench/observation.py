"""Turn RLBench's Observation into named arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maniple.core.spec import Layout


def arrays_of(observation: Any, layout: Layout, variation: int) -> dict[str, NDArray]:
    """Return the arrays of a layout from an Observation, in the layout's own types.

    Raises:
        ValueError: One is missing, or of another shape than was declared.
    """
    found = {}
    for name, spec in layout.items():
        value = variation if name == "variation_index" else getattr(observation, name, None)
        if value is None:
            raise ValueError(f"RLBench's observation has no {name!r}")
        array = np.asarray(value)
        if array.ndim == 0:
            array = array.reshape(1)
        if array.shape != spec.shape:
            raise ValueError(f"RLBench's {name!r} has shape {array.shape}, not {spec.shape}")
        found[name] = array.astype(spec.dtype)
    return found


def demo_arrays(demo: Sequence[Any], layout: Layout, variation: int) -> dict[str, Any]:
    """Turn a demonstration into observations and the absolute poses that lead through them."""
    rows = [arrays_of(observation, layout, variation) for observation in demo]
    obs = {name: np.stack([row[name] for row in rows]) for name in layout}
    action = [
        [*observation.gripper_pose, float(observation.gripper_open)] for observation in demo[1:]
    ]
    return {"obs": obs, "action": np.array(action, np.float32)}
