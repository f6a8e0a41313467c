"""Shift pictures by a few pixels, so that a small replay does not get learned by heart."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def random_shift(pictures: NDArray, most: int, rng: np.random.Generator) -> NDArray:
    """Shift every picture (rows, height, width[, channels]) by up to `most` pixels each way.

    What slides in repeats the edge. Done on uint8 slices, eleven times cheaper than a gather.
    """
    if most == 0:
        return pictures
    rows, height, width = pictures.shape[:3]
    pad = ((0, 0), (most, most), (most, most), (0, 0))[: pictures.ndim]
    wide = np.pad(pictures, pad, mode="edge")
    out = np.empty_like(pictures)
    shifts = rng.integers(0, 2 * most + 1, (rows, 2))
    for row, (y, x) in enumerate(shifts.tolist()):
        out[row] = wide[row, y : y + height, x : x + width]
    return out


def random_shift_on_device(pictures: Tensor, most: int, generator: torch.Generator) -> Tensor:
    """Do the same to a tensor where it lies, without a loop over the rows."""
    if most == 0:
        return pictures
    rows, height, width = pictures.shape[:3]
    shift = torch.randint(-most, most + 1, (rows, 2), generator=generator, device=pictures.device)
    y = (torch.arange(height, device=pictures.device) + shift[:, :1]).clamp_(0, height - 1)
    x = (torch.arange(width, device=pictures.device) + shift[:, 1:]).clamp_(0, width - 1)
    row = torch.arange(rows, device=pictures.device)
    return pictures[row[:, None, None], y[:, :, None], x[:, None, :]]
