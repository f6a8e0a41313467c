"""Turn named observations into one feature vector: states as they are, pictures encoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.core.errors import BadConfig, unknown
from maniple.core.spec import Layout

ENCODERS = ("small", "resnet")


@dataclass(frozen=True)
class EyeConfig:
    """How pictures become features."""

    encoder: str = "small"
    """small (three convolutions and a spatial softmax) or resnet (ten layers, learned pooling)."""

    width: int = 32
    """Channels of the small encoder; the resnet begins with twice as many."""

    features: int = 64
    """Numbers that stand for one camera."""


PICTURES = ("rgb", "depth")
"""Kinds of images that an encoder reads."""
SHARPNESS = 15.0
"""How sharp the softmax begins. From 5, one seed in three or four never found the ball well: its
place was off by 13 to 15 mm after 600 updates, by 9 to 10 mm from 15."""
DEPTH_RANGE_M = 3.0
"""Depths beyond this are all the same to the network: a table-top is nearer."""


def pictures_of(layout: Layout) -> tuple[str, ...]:
    """Names of the pictures in a layout, refusing kinds that no network here reads."""
    images = {name: spec.image for name, spec in layout.items() if spec.image is not None}
    for name, kind in images.items():
        if kind not in PICTURES:
            raise BadConfig(
                f"No network here reads {name!r}, a {kind} image; it reads "
                f"{' and '.join(PICTURES)}. Leave {kind} out of --env.image-kinds."
            )
    return tuple(images)


def states_of(layout: Layout) -> tuple[str, ...]:
    """Names of the arrays of plain numbers in a layout."""
    return tuple(
        n
        for n, s in layout.items()
        if s.image is None and len(s.shape) <= 2 and s.dtype.kind in "fb"
    )


class Eye(nn.Module):
    """Looks at chosen arrays of an observation.

    Arrays of numbers are joined; every picture goes through an encoder of its own. A relative eye
    adds where everything is as seen from the first position, which is the robot's tip: to take the
    difference of two places to the millimetre is hard for a network, and trivial here.
    """

    def __init__(
        self,
        layout: Layout,
        states: Sequence[str],
        pictures: Sequence[str] = (),
        config: EyeConfig | None = None,
        is_relative: bool = False,
    ) -> None:
        super().__init__()
        config = config or EyeConfig()
        for name in (*states, *pictures):
            if name not in layout:
                raise unknown("observation", name, layout, "the task's observation space")
        if config.encoder not in ENCODERS:
            raise unknown("encoder", config.encoder, ENCODERS, f"one of {ENCODERS}")
        if not states and not pictures:
            raise BadConfig("The agent sees nothing: name at least one state or picture.")
        self.states, self.pictures = tuple(states), tuple(pictures)
        kind = SmallEncoder if config.encoder == "small" else ResNetEncoder
        self.encoders = nn.ModuleDict(
            {name: kind(_with_channels(layout[name].shape), config) for name in self.pictures}
        )
        points = [(name, at) for name in self.states for at in layout[name].points]
        self._points = points if is_relative and len(points) > 1 else []
        numbers = sum(max(1, prod(layout[name].shape)) for name in self.states)
        numbers += 3 * max(0, len(self._points) - 1)
        self.width = numbers + config.features * len(self.pictures)
        # Metres, radians and radians per second differ a hundredfold: see `calibrate`.
        self.mean: Tensor
        self.scale: Tensor
        self.register_buffer("mean", torch.zeros(numbers))
        self.register_buffer("scale", torch.ones(numbers))

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return features, (rows, width)."""
        parts = [self._joined(obs)] if self.states else []
        parts += [self.encoders[name](obs[name]) for name in self.pictures]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)

    def calibrate(self, obs: Mapping[str, Tensor]) -> None:
        """From now on bring every number to mean 0 and spread 1, as they are in `obs`."""
        if not self.states:
            return
        numbers = self._numbers(obs)
        self.mean.copy_(numbers.mean(0))
        # A number that never changes carries nothing; it must not be blown up either.
        self.scale.copy_(1.0 / numbers.std(0).clamp(min=1e-3))

    def _joined(self, obs: Mapping[str, Tensor]) -> Tensor:
        return ((self._numbers(obs) - self.mean) * self.scale).clamp_(-10.0, 10.0)

    def _numbers(self, obs: Mapping[str, Tensor]) -> Tensor:
        parts = [obs[name].reshape(len(obs[name]), -1).float() for name in self.states]
        places = [obs[name][:, at : at + 3].float() for name, at in self._points]
        parts += [place - places[0] for place in places[1:]]
        return parts[0] if len(parts) == 1 else torch.cat(parts, -1)


class SmallEncoder(nn.Module):
    """Three convolutions, then where each channel looks: a spatial softmax.

    The sharp softmax and the wide range of the inputs let it find a ball of four pixels within a
    few hundred updates; with plain ones it took several times as long.
    """

    def __init__(self, shape: tuple[int, ...], config: EyeConfig) -> None:
        super().__init__()
        n = config.width
        self.convs = nn.Sequential(
            nn.Conv2d(shape[-1], n // 2, 5, stride=2, padding=2),
            nn.ReLU(inplace=True),
            nn.Conv2d(n // 2, n, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(n, n, 1),
        )
        self.out = nn.Linear(2 * n, config.features)
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS))

    def forward(self, picture: Tensor) -> Tensor:
        """Map (rows, height, width, channels) of uint8 to features."""
        maps = self.convs(as_input(picture) * 4.0)
        return self.out(self._where(maps) * 3.0)

    def _where(self, maps: Tensor) -> Tensor:
        rows, channels, height, width = maps.shape
        weight = F.softmax(maps.flatten(2) * self.sharpness, -1).view(rows, channels, height, width)
        x = torch.linspace(-1, 1, width, device=maps.device)
        y = torch.linspace(-1, 1, height, device=maps.device)
        return torch.cat([(weight.sum(2) * x).sum(-1), (weight.sum(3) * y).sum(-1)], -1)


class ResNetEncoder(nn.Module):
    """Ten layers with shortcuts, pooled by weights that are learned for every place."""

    def __init__(self, shape: tuple[int, ...], config: EyeConfig) -> None:
        super().__init__()
        n, channels = 2 * config.width, shape[-1]
        self.stem = nn.Sequential(
            nn.Conv2d(channels, n, 7, stride=2, padding=3, bias=False),
            nn.GroupNorm(4, n),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        widths = [n, n, 2 * n, 4 * n, 8 * n]
        self.blocks = nn.Sequential(
            *[Residual(widths[k], widths[k + 1], 1 if k == 0 else 2) for k in range(4)]
        )
        with torch.no_grad():
            maps = self.blocks(self.stem(as_input(torch.zeros(1, *shape, dtype=torch.uint8))))
        # Eight weighted sums over all places of each channel.
        self.places = nn.Parameter(torch.randn(8, *maps.shape[1:]) * maps[0].numel() ** -0.5)
        self.out = nn.Sequential(
            nn.Linear(8 * maps.shape[1], config.features), nn.LayerNorm(config.features), nn.Tanh()
        )

    def forward(self, picture: Tensor) -> Tensor:
        """Map (rows, height, width, channels) of uint8 to features."""
        maps = self.blocks(self.stem(as_input(picture)))
        return self.out(torch.einsum("bchw,kchw->bkc", maps, self.places).flatten(1))


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(4, n_out)
        self.second = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(4, n_out)
        self.short: nn.Module = nn.Identity()
        if stride > 1 or n_in != n_out:
            self.short = nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the convolutions find to what came in."""
        y = F.relu(self.norm1(self.first(x)), inplace=True)
        return F.relu(self.norm2(self.second(y)) + self.short(x), inplace=True)


def as_input(picture: Tensor) -> Tensor:
    """Map colours (uint8) or depths (m) to numbers around 0, (rows, channels, height, width)."""
    if picture.ndim == 3:
        picture = picture.unsqueeze(-1)
    moved = picture.permute(0, 3, 1, 2).float()
    if picture.is_floating_point():
        return moved.clamp(0.0, DEPTH_RANGE_M).div(DEPTH_RANGE_M).sub(0.5)
    return moved.div_(255.0).sub_(0.5)


def _with_channels(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A depth picture has no axis for its one channel."""
    return shape if len(shape) == 3 else (*shape, 1)
