"""Tell from pictures whether a task is solved: a reward for robots that have no simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional as F

from maniple.agents.agent import Arrays, as_tensors, flat, load_exactly
from maniple.agents.augment import random_shift
from maniple.agents.eye import Eye, EyeConfig, pictures_of
from maniple.core.errors import BadConfig
from maniple.core.spec import Layout


@dataclass(frozen=True)
class ClassifierConfig:
    """How solved is distinguished from unsolved."""

    eye: EyeConfig = field(default_factory=EyeConfig)
    """How pictures become features."""

    hidden: int = 64
    """Width of the hidden layer."""

    lr: float = 1e-3
    """Learning rate."""

    shift: int = 2
    """Pixels by which pictures are shifted at most."""


class Classifier:
    """A binary classifier of pictures."""

    def __init__(
        self, layout: Layout, config: ClassifierConfig, cameras: Sequence[str] = (), seed: int = 0
    ) -> None:
        pictures = tuple(cameras) or pictures_of(layout)
        if not pictures:
            raise BadConfig("A reward classifier needs pictures: name cameras.")
        self.config = config
        self._rng = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.eye = Eye(layout, (), pictures, config.eye)
            self.head = nn.Sequential(
                nn.Linear(self.eye.width, config.hidden), nn.ReLU(), nn.Linear(config.hidden, 1)
            )
        parameters = [*self.eye.parameters(), *self.head.parameters()]
        self._optimizer = torch.optim.Adam(parameters, lr=config.lr, fused=True)

    def update(self, obs: Mapping[str, NDArray], solved: NDArray[np.bool_]) -> dict[str, float]:
        """Learn from pictures of which is known whether they show success."""
        shift = self.config.shift
        moved = {n: random_shift(obs[n], shift, self._rng) for n in self.eye.pictures}
        wanted = torch.from_numpy(np.asarray(solved, np.float32))
        logits = self._logits(moved)
        loss = F.binary_cross_entropy_with_logits(logits, wanted)
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        right = ((logits > 0) == (wanted > 0.5)).float().mean()
        return {"loss": float(loss.detach()), "accuracy": float(right)}

    def probability(self, obs: Mapping[str, NDArray]) -> NDArray[np.float32]:
        """Return how likely every row shows success."""
        with torch.inference_mode():
            return torch.sigmoid(self._logits(obs)).numpy()

    def weights(self) -> Arrays:
        """Return what judging needs."""
        return flat("eye", self.eye.state_dict()) | flat("head", self.head.state_dict())

    def load_weights(self, arrays: Mapping[str, NDArray]) -> None:
        """Take over what `weights` returned."""
        wanted = {f"eye.{k}": v for k, v in self.eye.state_dict().items()}
        load_exactly(wanted | {f"head.{k}": v for k, v in self.head.state_dict().items()}, arrays)

    def _logits(self, obs: Mapping[str, NDArray]) -> torch.Tensor:
        seen = as_tensors(obs, self.eye.pictures, "cpu")
        return self.head(self.eye(seen)).squeeze(-1)
