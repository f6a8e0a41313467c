"""Soft actor-critic with an ensemble of critics evaluated as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

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
from maniple.agents.eye import Eye, states_of
from maniple.agents.nets import Ensemble, Policy
from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions


@dataclass(frozen=True)
class SACConfig:
    """How the agent learns."""

    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of policy and critics."""

    critics: int = 2
    """Members of the critic ensemble."""

    critics_used: int = 2
    """Members drawn for every target; the least of them counts (REDQ)."""

    relative: bool = False
    """Show policy and critics where things are as seen from the tip, too."""

    layer_norm: bool = False
    """Normalise inside the critics: steadier with demonstrations and many updates per step."""

    lr: float = 1e-3
    """Learning rate of policy, critics and temperature."""

    discount: float = 0.95
    """Worth of a reward one step later."""

    tau: float = 0.01
    """How far the target critics move in each update."""

    temperature: float = 0.1
    """What entropy is worth at the beginning."""

    target_entropy: float | None = None
    """Entropy that the temperature aims at; None: minus half the number of actions."""

    actor_every: int = 1
    """Critic updates for each update of the policy."""

    imitation: float = 0.0
    """Weight of doing as the demonstrations do, wherever the critics think that this is better
    than what the policy would do."""

    grad_clip: float | None = None
    """Longest gradient; None: any."""

    compile: bool = False
    """Compile the update with torch.compile: meant for GPUs. On two CPU cores it was not faster."""

    def __post_init__(self) -> None:
        if not 1 <= self.critics_used <= self.critics:
            raise BadConfig(
                f"critics_used is {self.critics_used}; it must be from 1 to critics={self.critics}."
            )
        if not 0 < self.lr < 1:
            raise BadConfig(f"lr is {self.lr}; it must be above 0 and below 1.")
        if not (isfinite(self.imitation) and self.imitation >= 0):
            raise BadConfig(f"imitation is {self.imitation}; it is a weight, 0 or larger.")
        if not 0 < self.discount <= 1:
            raise BadConfig(f"discount is {self.discount}; it must be above 0 and at most 1.")


class Shown(NamedTuple):
    """The demonstrations at the beginning of a batch."""

    action: Tensor
    worth: Tensor
    """What the critics think of it."""


class SAC:
    """Acts by a squashed Gaussian, learns from any transitions."""

    def __init__(
        self,
        layout: Layout,
        action: ArraySpec,
        config: SACConfig,
        sees: Sequence[str] = (),
        seed: int = 0,
        device: str = "cpu",
        noise_seed: int | None = None,
    ) -> None:
        """Make an untrained agent.

        Args:
            sees: Arrays of numbers that the policy looks at; empty: all.
            seed: Of the weights.
            noise_seed: Of exploration and updates; None: as the weights.
        """
        self.config = config
        self.device = torch.device(device)
        self.range = ActionRange(action)
        noise_seed = seed if noise_seed is None else noise_seed
        self._generator = torch.Generator(self.device).manual_seed(noise_seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._build(layout, tuple(sees) or states_of(layout))
        self.target = _copy_of(self.critic)
        self.log_temperature = torch.tensor(
            float(np.log(config.temperature)), device=self.device, requires_grad=True
        )
        self._target_entropy = (
            -0.5 * self.range.size if config.target_entropy is None else config.target_entropy
        )
        self._critic_parameters = [*self.critic.parameters(), *self._critic_eye_parameters()]
        self._actor_parameters = [*self.policy.parameters(), *self._actor_eye_parameters()]
        self._optimizers = {
            "critic": make_adam(self._critic_parameters, config.lr),
            "actor": make_adam(self._actor_parameters, config.lr),
            "temperature": make_adam([self.log_temperature], config.lr),
        }
        self.updates = 0
        self.sync: Sync | None = None
        """Averages gradients over ranks, where there are several."""
        self._learn = torch.compile(self._losses) if config.compile else self._losses

    def _build(self, layout: Layout, sees: tuple[str, ...]) -> None:
        """Make the networks; what the policy sees, the critics see too."""
        config = self.config
        self.actor_eye = self.critic_eye = Eye(layout, sees, is_relative=config.relative).to(
            self.device
        )
        self._build_heads(config)

    def _build_heads(self, config: SACConfig) -> None:
        size = self.range.size
        self.policy = Policy(self.actor_eye.width, config.hidden, size, norm=False)
        inputs = self.critic_eye.width + size
        self.critic = Ensemble(config.critics, inputs, config.hidden, config.layer_norm)
        self.policy.to(self.device)
        self.critic.to(self.device)

    def calibrate(self, obs: Mapping[str, NDArray]) -> None:
        """Learn the scale of the observations from a sample of them, before the first update."""
        for eye in {id(e): e for e in (self.actor_eye, self.critic_eye)}.values():
            eye.calibrate(as_tensors(obs, eye.states, self.device))
            if self.sync is not None:
                self.sync([eye.mean, eye.scale])

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray:
        """Return an action for every row: drawn, or the most likely one."""
        with torch.inference_mode():
            seen = as_tensors(obs, self.policy_inputs, self.device)
            if explore:
                features = self.actor_eye(seen)
                actions, _ = self.policy.sample(features, self._noise(len(features)))
            else:
                actions = in_fixed_batches(self._best_action, seen)
        return self.range.to_env(actions.cpu().numpy())

    @property
    def policy_inputs(self) -> tuple[str, ...]:
        """The observations that the policy looks at."""
        return (*self.actor_eye.states, *self.actor_eye.pictures)

    def _best_action(self, obs: dict[str, Tensor]) -> Tensor:
        return torch.tanh(self.policy(self.actor_eye(obs))[0])

    def update(self, batch: Transitions) -> dict[str, float]:
        """Learn from one batch."""
        obs, next_obs = self._prepare(batch)
        action = self._tensor(self.range.from_env(batch.action))
        reward, discount = self._tensor(batch.reward), self._tensor(batch.discount)
        with_actor = self.updates % self.config.actor_every == 0
        self.updates += 1
        with self._precision():
            metrics = self._learn(obs, action, reward, discount, next_obs, with_actor, batch.shown)
        return {name: float(value) for name, value in metrics.items()}

    def _losses(
        self,
        obs: dict,
        action: Tensor,
        reward: Tensor,
        discount: Tensor,
        next_obs: dict,
        act: bool,
        shown: int,
    ) -> dict[str, Tensor]:
        features = self.critic_eye(obs)
        with torch.no_grad():
            goal = self._goal(reward, discount, next_obs)
        values = self.critic(torch.cat([features, action], -1))
        critic_loss = (values - goal).square().mean(1).sum() * 0.5
        self._apply("critic", critic_loss, self._critic_parameters)
        metrics = {"critic_loss": critic_loss.detach(), "value": values.detach().mean()}
        if act:
            demos = Shown(action[:shown], values.detach().mean(0)[:shown])
            metrics |= self._improve_policy(obs, features.detach(), demos)
        with torch.no_grad():
            pairs = zip(self.target.parameters(), self.critic.parameters(), strict=True)
            for slow, online in pairs:
                slow.lerp_(online, self.config.tau)
        return metrics

    def _goal(self, reward: Tensor, discount: Tensor, next_obs: dict) -> Tensor:
        """What the critics should say: reward, and the worth of what comes after."""
        seen = self.critic_eye(next_obs)
        looked = seen if self.actor_eye is self.critic_eye else self.actor_eye(next_obs)
        next_action, density = self.policy.sample(looked, self._noise(len(reward)))
        worth = self.target(torch.cat([seen, next_action], -1))
        if self.config.critics_used < self.config.critics:
            order = torch.randperm(
                self.config.critics, generator=self._generator, device=self.device
            )
            worth = worth[order[: self.config.critics_used]]
        worth = worth.min(0).values - self.log_temperature.exp() * density
        return reward + discount * worth

    def _improve_policy(self, obs: dict, features: Tensor, demos: Shown) -> dict[str, Tensor]:
        shared = self.actor_eye is self.critic_eye
        looked = features if shared else self.actor_eye(obs)
        action, density = self.policy.sample(looked, self._noise(len(features)))
        worth = self.critic(torch.cat([features, action], -1)).mean(0)
        temperature = self.log_temperature.detach().exp()
        loss = (temperature * density - worth).mean() + self._hint(looked, features)
        if self.config.imitation > 0 and len(demos.action):
            loss = loss + self.config.imitation * self._unlike(demos, looked, worth.detach())
        self._apply("actor", loss, self._actor_parameters)
        entropy = -density.detach().mean()
        heat_loss = self.log_temperature.exp() * (entropy - self._target_entropy)
        self._apply("temperature", heat_loss, [self.log_temperature])
        return {"actor_loss": loss.detach(), "entropy": entropy, "temperature": temperature}

    def _unlike(self, demos: Shown, looked: Tensor, worth: Tensor) -> Tensor:
        """How far the policy is from demonstrations that are worth more than its own actions."""
        count = len(demos.action)
        gap = (torch.tanh(self.policy(looked[:count])[0]) - demos.action).square().sum(-1)
        return (gap * (demos.worth > worth[:count])).mean()

    def _hint(self, looked: Tensor, features: Tensor) -> Tensor | float:
        """What else helps the policy's eye to learn; nothing here."""
        return 0.0

    def _apply(self, name: str, loss: Tensor, parameters: list) -> None:
        gradients = list(torch.autograd.grad(loss, parameters))
        if self.sync is not None:
            self.sync(gradients)
        if self.config.grad_clip is not None:
            norm = torch.nn.utils.get_total_norm(gradients)
            scale = (self.config.grad_clip / (norm + 1e-6)).clamp(max=1.0)
            gradients = [gradient * scale for gradient in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        self._optimizers[name].step()

    def _prepare(self, batch: Transitions) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Move what the networks look at to the device."""
        names = dict.fromkeys(
            (*self.actor_eye.states, *self.critic_eye.states, *self.actor_eye.pictures)
        )
        chosen = tuple(names)
        return (
            as_tensors(batch.obs, chosen, self.device),
            as_tensors(batch.next_obs, chosen, self.device),
        )

    def weights(self) -> Arrays:
        """Return what acting needs."""
        return flat("policy", self.policy.state_dict()) | flat("eye", self.actor_eye.state_dict())

    def load_weights(self, arrays: Mapping[str, NDArray]) -> None:
        """Take over what `weights` returned."""
        wanted = {f"policy.{k}": v for k, v in self.policy.state_dict().items()}
        wanted |= {f"eye.{k}": v for k, v in self.actor_eye.state_dict().items()}
        load_exactly(wanted, arrays)

    def state(self) -> Arrays:
        """Return everything that learning needs in order to go on exactly."""
        return {name: value.cpu().numpy().copy() for name, value in self._tensors().items()}

    def load_state(self, arrays: Mapping[str, NDArray]) -> None:
        """Take over what `state` returned."""
        load_exactly(self._tensors(), arrays)
        self._generator.set_state(torch.from_numpy(np.array(arrays["generator"])))
        self.updates = int(arrays["updates"])

    def _tensors(self) -> dict[str, Tensor]:
        modules: dict[str, nn.Module] = {
            "policy": self.policy,
            "critic": self.critic,
            "target": self.target,
        }
        modules["eye"] = self.actor_eye
        if self.critic_eye is not self.actor_eye:
            modules["critic_eye"] = self.critic_eye
        modules |= self._more_modules()
        out = {f"{m}.{k}": v for m, net in modules.items() for k, v in net.state_dict().items()}
        out["log_temperature"] = self.log_temperature.detach()
        for name, optimizer in self._optimizers.items():
            out |= adam_tensors(name, optimizer)
        out["generator"] = self._generator.get_state()
        out["updates"] = torch.tensor(self.updates)
        return out

    def _more_modules(self) -> dict[str, nn.Module]:
        """Networks that only a kind of this agent has."""
        return {}

    def _critic_eye_parameters(self) -> list[nn.Parameter]:
        return list(self.critic_eye.parameters())

    def _actor_eye_parameters(self) -> list[nn.Parameter]:
        """The eye that both share learns from the critics alone."""
        return [] if self.actor_eye is self.critic_eye else list(self.actor_eye.parameters())

    def _noise(self, rows: int) -> Tensor:
        return torch.randn(rows, self.range.size, generator=self._generator, device=self.device)

    def _tensor(self, array: NDArray) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float32, device=self.device)

    def _precision(self) -> Any:
        """Half the bytes on GPUs; a CPU of this age has no fast bfloat16."""
        on_gpu = self.device.type == "cuda"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=on_gpu)


def _copy_of(module: Ensemble) -> Ensemble:
    from copy import deepcopy

    twin = deepcopy(module)
    for parameter in twin.parameters():
        parameter.requires_grad_(False)
    return twin
