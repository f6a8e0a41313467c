"""The network that a trained policy acts with, without what learning needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maniple.agents.agent import ActionRange, in_fixed_batches
from maniple.agents.eye import Eye, EyeConfig
from maniple.agents.nets import Policy
from maniple.core.spec import ArraySpec, Layout


@dataclass(frozen=True)
class NetSpec:
    """All that builds the network again; plain numbers and words, so that it fits into JSON."""

    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The arrays that it looks at, in order; pictures as they are stacked."""

    dtypes: dict[str, str] = field(default_factory=dict)
    """Their types."""

    images: dict[str, str] = field(default_factory=dict)
    """Which of them are pictures, and of which kind."""

    points: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Where positions begin among the numbers of an array."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers."""

    relative: bool = False
    """It also sees where things are as seen from the tip."""

    encoder: str = EyeConfig.encoder
    """How pictures become features."""

    encoder_width: int = EyeConfig.width
    """Channels of the encoder."""

    encoder_features: int = EyeConfig.features
    """Numbers that stand for one camera."""

    low: tuple[float, ...] = ()
    """Least action."""

    high: tuple[float, ...] = ()
    """Greatest action."""

    @property
    def layout(self) -> Layout:
        """The arrays that it looks at."""
        return Layout(
            {
                name: ArraySpec(
                    tuple(shape),
                    np.dtype(self.dtypes[name]),
                    image=self.images.get(name),
                    points=tuple(self.points.get(name, ())),
                )
                for name, shape in self.shapes.items()
            }
        )


class InferenceNet(nn.Module):
    """Acts as the agent did that was trained, always the same way."""

    def __init__(self, spec: NetSpec) -> None:
        super().__init__()
        layout = spec.layout
        states = [name for name in layout if name not in spec.images]
        eye = EyeConfig(spec.encoder, spec.encoder_width, spec.encoder_features)
        self.eye = Eye(layout, states, list(spec.images), eye, spec.relative)
        low, high = (np.asarray(bound, np.float32) for bound in (spec.low, spec.high))
        self.range = ActionRange(ArraySpec(low.shape, low.dtype, low, high))
        self.policy = Policy(self.eye.width, tuple(spec.hidden), self.range.size, norm=False)

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        """Return the most likely action of every row, within (-1, 1)."""
        return torch.tanh(self.policy(self.eye(obs))[0])

    def act(self, obs: Mapping[str, Tensor]) -> NDArray:
        """Return the most likely action of every row, as the environment takes it."""
        with torch.inference_mode():
            actions = in_fixed_batches(self, dict(obs))
        return self.range.to_env(actions.cpu().numpy())
