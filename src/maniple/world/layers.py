"""Layers that several world models are built of."""

from __future__ import annotations

from torch import nn


def down(inputs: int, outputs: int) -> nn.Module:
    """Halve height and width."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, 4, 2, 1), nn.GELU())


def up(inputs: int, outputs: int) -> nn.Module:
    """Double height and width."""
    return nn.ConvTranspose2d(inputs, outputs, 4, 2, 1)


def mlp(inputs: int, width: int, outputs: int) -> nn.Module:
    """One hidden layer."""
    return nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, outputs))
