"""Read the steps that an actor sent, trusting nothing in them."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout

MOST_BYTES = 1 << 30
"""A larger parcel is no parcel."""
FLAGS = ("terminated", "ended", "usable")
FIELDS = ("action", "reward", *FLAGS)
"""What a parcel holds of every step besides observations, as a replay takes it."""


class Steps(NamedTuple):
    """Some vector steps of one actor: arrays (T, rows, ...), observations (T + 1, rows, ...)."""

    arrays: dict[str, NDArray]
    count: int
    metrics: dict[str, float]


def read_parcel(parcel: Any, layout: Layout, action: ArraySpec) -> Steps:
    """Check a parcel and take it apart.

    Raises:
        BadConfig: It is not what an actor of this version sends.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if not isinstance(parcel, (tuple, list)) or len(parcel) != 5:
        raise BadConfig("it is no parcel")
    *_, blob, about = parcel
    if not isinstance(blob, bytes) or len(blob) > MOST_BYTES:
        raise BadConfig("its steps are no bytes, or too many")
    try:
        arrays = load(blob)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise BadConfig(f"its steps are not readable ({error})") from None
    wanted = {f"obs.{name}": spec for name, spec in layout.items()}
    wanted |= {"action": action, "reward": ArraySpec(())}
    wanted |= {name: ArraySpec((), np.dtype(np.bool_)) for name in FLAGS}
    if arrays.keys() != wanted.keys():
        raise BadConfig(f"it holds {sorted(arrays)[:4]}..., not {sorted(wanted)[:4]}...")
    lead = arrays["reward"].shape
    if len(lead) != 2 or not all(lead):
        raise BadConfig(f"its rewards have shape {lead}")
    for name, spec in wanted.items():
        steps = lead[0] + 1 if name.startswith("obs.") else lead[0]
        array = arrays[name]
        if array.shape != (steps, lead[1], *spec.shape) or array.dtype != spec.dtype:
            raise BadConfig(f"its {name!r} is {array.dtype}{list(array.shape)}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BadConfig(f"its {name!r} is not finite")
    return Steps(arrays, lead[0] * lead[1], _metrics(about))


def _metrics(about: Any) -> dict[str, float]:
    """Read what an actor reports; what is no number is left out."""
    try:
        found = json.loads(about) if isinstance(about, str) and len(about) < 10_000 else {}
    except (ValueError, RecursionError):
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    numbers = {k: v for k, v in pairs if isinstance(v, (int, float)) and not isinstance(v, bool)}
    return {str(k)[:60]: float(v) for k, v in numbers.items() if isfinite(v) and k != "version"}
