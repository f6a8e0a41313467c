"""Tell by a short text whether two compiled models are the same."""

from __future__ import annotations

import hashlib

import mujoco
import numpy as np

LENGTH = 16


def model_digest(model: mujoco.MjModel) -> str:
    """Return a digest of all numbers of a model, the same on every machine."""
    found = hashlib.sha256()
    for name in sorted(name for name in dir(model) if not name.startswith("_")):
        value = getattr(model, name)
        if isinstance(value, np.ndarray):
            found.update(name.encode() + np.ascontiguousarray(value).tobytes())
    for name in ("timestep", "gravity", "integrator", "cone", "solver", "iterations"):
        found.update(np.asarray(getattr(model.opt, name)).tobytes())
    return found.hexdigest()[:LENGTH]
