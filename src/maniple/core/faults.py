"""What marks a row whose simulator or worker failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOST = ("worker_restarted", "worker_restarting", "env_error")
"""Rows with one of these infos show something that does not follow from what they did."""


def lost_rows(info: Mapping[str, Any]) -> NDArray[np.bool_] | None:
    """Rows whose new observation does not follow from their action; None: there are none."""
    masks = [info[f"_{key}"] for key in LOST if f"_{key}" in info]
    return np.logical_or.reduce(masks) if masks else None
