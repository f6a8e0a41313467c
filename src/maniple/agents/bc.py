"""Behaviour cloning: do what the demonstrations did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.agents.agent import ActionRange, Arrays, as_tensors, flat, load_exactly
from maniple.agents.augment import random_shift
from maniple.agents.eye import Eye, EyeConfig, pictures_of, states_of
from maniple.agents.nets import Policy
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions


@dataclass(frozen=True)
class BCConfig:
    """How the policy imitates."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers."""

    gaussian: bool = False
    """Learn a distribution over actions; otherwise the action alone, by its squared error."""

    lr: float = 1e-3
    """Learning rate."""

    eye: EyeConfig = field(default_factory=EyeConfig)
    """How pictures become features."""

    shift: int = 3
    """Pixels by which pictures are shifted at most."""

    frame_stack: int = 1
    """Pictures that are shown at once."""

    discount: float = 0.99
    """Not used in imitation; there so that all agents can be drawn batches alike."""


class BC:
    """Imitates on states, on pictures, or on both."""

    def __init__(
        self,
        layout: Layout,
        action: ArraySpec,
        config: BCConfig,
        sees: Sequence[str] = (),
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.range = ActionRange(action)
        self.updates = 0
        self._rng = np.random.default_rng(seed)
        self._generator = torch.Generator(self.device).manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            states = tuple(sees) or states_of(layout)
            self.eye = Eye(layout, states, pictures_of(layout), config.eye).to(self.device)
            self.policy = Policy(self.eye.width, config.hidden, self.range.size, norm=False)
            self.policy.to(self.device)
        parameters = [*self.eye.parameters(), *self.policy.parameters()]
        self._optimizer = torch.optim.Adam(parameters, lr=config.lr, fused=True)

    def calibrate(self, obs: Mapping[str, NDArray]) -> None:
        """Learn the scale of the observations from a sample of them, before the first update."""
        self.eye.calibrate(as_tensors(obs, self.eye.states, self.device))

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row."""
        with torch.inference_mode():
            features = self.eye(self._seen(obs))
            if explore and self.config.gaussian:
                noise = torch.randn(
                    len(features), self.range.size, generator=self._generator, device=self.device
                )
                actions, _ = self.policy.sample(features, noise)
            else:
                actions = torch.tanh(self.policy(features)[0])
        return self.range.to_env(actions.cpu().numpy())

    def update(self, batch: Transitions) -> dict[str, float]:
        """Learn from one batch."""
        moved = {
            n: random_shift(batch.obs[n], self.config.shift, self._rng) for n in self.eye.pictures
        }
        features = self.eye(self._seen(batch.obs | moved))
        wanted = torch.as_tensor(self.range.from_env(batch.action), device=self.device)
        if self.config.gaussian:
            loss = -self.policy.log_prob(features, wanted).mean()
        else:
            loss = (torch.tanh(self.policy(features)[0]) - wanted).square().mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.updates += 1
        return {"bc_loss": float(loss.detach())}

    def weights(self) -> Arrays:
        """Return what acting needs."""
        return flat("policy", self.policy.state_dict()) | flat("eye", self.eye.state_dict())

    def load_weights(self, arrays: Mapping[str, NDArray]) -> None:
        """Take over what `weights` returned."""
        wanted = {f"policy.{k}": v for k, v in self.policy.state_dict().items()}
        load_exactly(wanted | {f"eye.{k}": v for k, v in self.eye.state_dict().items()}, arrays)

    def _seen(self, obs: Mapping[str, NDArray]) -> dict[str, Tensor]:
        return as_tensors(obs, (*self.eye.states, *self.eye.pictures), self.device)
