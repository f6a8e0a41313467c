"""Behaviour cloning: do what the demonstrations did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.agents.agent import (
    ActionRange,
    Arrays,
    Sync,
    adam_tensors,
    as_tensors,
    flat,
    in_fixed_batches,
    load_exactly,
    make_adam,
)
from maniple.agents.augment import random_shift
from maniple.agents.eye import Eye, EyeConfig, pictures_of, states_of
from maniple.agents.nets import Policy
from maniple.core.errors import BadConfig
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

    relative: bool = False
    """Show the policy where things are as seen from the tip, too."""

    eye: EyeConfig = field(default_factory=EyeConfig)
    """How pictures become features."""

    shift: int = 3
    """Pixels by which pictures are shifted at most."""

    frame_stack: int = 1
    """Pictures that are shown at once."""

    discount: float = 0.99
    """Not used in imitation; there so that all agents can be drawn batches alike."""

    def __post_init__(self) -> None:
        if not 0 < self.lr < 1:
            raise BadConfig(f"lr is {self.lr}; it must be above 0 and below 1.")


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
        noise_seed: int | None = None,
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.range = ActionRange(action)
        self.updates = 0
        self.sync: Sync | None = None
        noise_seed = seed if noise_seed is None else noise_seed
        self._rng = np.random.default_rng(noise_seed)
        self._generator = torch.Generator(self.device).manual_seed(noise_seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            states = tuple(sees) or states_of(layout)
            pictures = pictures_of(layout)
            self.eye = Eye(layout, states, pictures, config.eye, config.relative).to(self.device)
            self.policy = Policy(self.eye.width, config.hidden, self.range.size, norm=False)
            self.policy.to(self.device)
        self._parameters = [*self.eye.parameters(), *self.policy.parameters()]
        self._optimizer = make_adam(self._parameters, config.lr)

    def calibrate(self, obs: Mapping[str, NDArray]) -> None:
        """Learn the scale of the observations from a sample of them, before the first update."""
        self.eye.calibrate(as_tensors(obs, self.eye.states, self.device))
        if self.sync is not None:
            self.sync([self.eye.mean, self.eye.scale])

    @property
    def policy_inputs(self) -> tuple[str, ...]:
        """The observations that the policy looks at."""
        return (*self.eye.states, *self.eye.pictures)

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row."""
        with torch.inference_mode():
            seen = as_tensors(obs, self.policy_inputs, self.device)
            if explore and self.config.gaussian:
                features = self.eye(seen)
                noise = torch.randn(
                    len(features), self.range.size, generator=self._generator, device=self.device
                )
                actions, _ = self.policy.sample(features, noise)
            else:
                actions = in_fixed_batches(self._best_action, seen)
        return self.range.to_env(actions.cpu().numpy())

    def update(self, batch: Transitions) -> dict[str, float]:
        """Learn from one batch."""
        moved = {
            n: random_shift(batch.obs[n], self.config.shift, self._rng) for n in self.eye.pictures
        }
        features = self.eye(as_tensors(batch.obs | moved, self.policy_inputs, self.device))
        wanted = torch.as_tensor(self.range.from_env(batch.action), device=self.device)
        if self.config.gaussian:
            loss = -self.policy.log_prob(features, wanted).mean()
        else:
            loss = (torch.tanh(self.policy(features)[0]) - wanted).square().mean()
        gradients = list(torch.autograd.grad(loss, self._parameters, materialize_grads=True))
        if self.sync is not None:
            self.sync(gradients)
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        self._optimizer.step()
        self.updates += 1
        return {"bc_loss": float(loss.detach())}

    def _best_action(self, obs: dict[str, Tensor]) -> Tensor:
        return torch.tanh(self.policy(self.eye(obs))[0])

    def weights(self) -> Arrays:
        """Return what acting needs."""
        return flat("policy", self.policy.state_dict()) | flat("eye", self.eye.state_dict())

    def load_weights(self, arrays: Mapping[str, NDArray]) -> None:
        """Take over what `weights` returned."""
        load_exactly(self._weight_tensors(), arrays)

    def state(self) -> Arrays:
        """Return everything that learning needs in order to go on exactly."""
        arrays = {name: value.cpu().numpy().copy() for name, value in self._tensors().items()}
        # 128-bit numbers do not fit into an array's: as text.
        text = json.dumps(self._rng.bit_generator.state).encode()
        return arrays | {"rng": np.frombuffer(text, np.uint8)}

    def load_state(self, arrays: Mapping[str, NDArray]) -> None:
        """Take over what `state` returned."""
        own = dict(arrays)
        self._rng.bit_generator.state = json.loads(own.pop("rng").tobytes())
        load_exactly(self._tensors(), own)
        self._generator.set_state(torch.from_numpy(np.array(own["generator"])))
        self.updates = int(own["updates"])

    def _weight_tensors(self) -> dict[str, Tensor]:
        wanted = {f"policy.{k}": v for k, v in self.policy.state_dict().items()}
        return wanted | {f"eye.{k}": v for k, v in self.eye.state_dict().items()}

    def _tensors(self) -> dict[str, Tensor]:
        more = {"generator": self._generator.get_state(), "updates": torch.tensor(self.updates)}
        return self._weight_tensors() | adam_tensors("policy", self._optimizer) | more
