"""Choose where networks live."""

from __future__ import annotations

import torch

from maniple.core.errors import BadConfig


def device_of(name: str) -> str:
    """Choose where the networks live."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise BadConfig("device is cuda, but this machine has no CUDA GPU. Use --device cpu.")
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise BadConfig(f"device is {name!r}; it may be cpu, cuda, cuda:N or auto.") from None
    return name
