"""Put the next frame together: the last one, parts of it that moved, a still picture, new paint."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.world.layers import up

STILL_PACE = 8.0
"""The still picture learns so many times faster: every pixel of it is a weight of its own."""
COPIED_AT_FIRST = 2.0
"""Logit of the last frame in a new model: a mask that is half open blurs what never moves."""


class Composite(nn.Module):
    """Chooses for every pixel where its colour comes from.

    A frame that is only generated is blurred where a thin arm moves by two pixels: moving
    pixels of the last frame keep their edges. What an arm uncovers, the camera has seen before.
    """

    def __init__(self, features: int, cameras: int, size: tuple[int, int]) -> None:
        """Make one for pictures of `size`, from features of half that size."""
        super().__init__()
        self.cameras = cameras
        self.paint = up(features, 6 * cameras)
        self.flow = nn.Conv2d(features, 2 * cameras, 3, padding=1)
        self.still = nn.Parameter(torch.zeros(cameras, 3, *size))
        nn.init.zeros_(self.flow.weight)
        assert self.flow.bias is not None
        nn.init.zeros_(self.flow.bias)

    def forward(self, last: Tensor, features: Tensor) -> Tensor:
        """Return the next frame, (B, channels, h, w), from the last one and features."""
        rows, _, height, width = last.shape
        drawn = self.paint(features).view(rows, self.cameras, 6, height, width)
        new = torch.sigmoid(drawn[:, :, 3:])
        old = last.view(rows, self.cameras, 3, height, width)
        still = torch.sigmoid(STILL_PACE * self.still).expand_as(old)
        moved = self._moved(last, features).view_as(old)
        copied = torch.full_like(drawn[:, :, :1], COPIED_AT_FIRST)
        share = torch.cat([copied, drawn[:, :, :3]], 2).softmax(2)[:, :, :, None]
        parts = torch.stack([old, moved, still, new], 2)
        return (share * parts).sum(2).view_as(last)

    def _moved(self, last: Tensor, features: Tensor) -> Tensor:
        """Fetch every pixel from where the flow says that it was, in pixels."""
        rows, _, height, width = last.shape
        size = (height, width)
        flow = F.interpolate(self.flow(features), size, mode="bilinear", align_corners=False)
        flow = flow.view(rows * self.cameras, 2, height, width)
        y = torch.arange(height, device=last.device, dtype=last.dtype) + 0.5
        x = torch.arange(width, device=last.device, dtype=last.dtype) + 0.5
        across = (x + flow[:, 0]) * (2 / width) - 1
        down = (y[:, None] + flow[:, 1]) * (2 / height) - 1
        place = torch.stack([across, down], -1)
        frames = last.reshape(rows * self.cameras, 3, height, width)
        return F.grid_sample(frames, place, padding_mode="border", align_corners=False)
