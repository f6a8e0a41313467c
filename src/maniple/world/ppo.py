"""Explore with a policy that PPO trains on the explorer's rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maniple.agents.agent import ActionRange, adam_tensors, flat, load_exactly, make_adam
from maniple.core.spec import ArraySpec
from maniple.run.ranks import Ranks
from maniple.world.layers import mlp
from maniple.world.prediction import WorldModel
from maniple.world.tracker import Tracker

CLIP, ENTROPY, VALUE = 0.2, 0.01, 0.5
DISCOUNT, LAMBDA = 0.99, 0.95
EPOCHS, PARTS = 4, 4
RATE = 3e-4


class Policy(nn.Module):
    """A Gaussian over what is squashed into (-1, 1), and the value of being there."""

    def __init__(self, code_size: int, action_size: int) -> None:
        super().__init__()
        self.mean = mlp(code_size, 128, action_size)
        self.value = mlp(code_size, 128, 1)
        self.log_spread = nn.Parameter(torch.full((action_size,), -0.5))

    def gaussian(self, code: Tensor) -> torch.distributions.Normal:
        """The distribution of raw actions."""
        return torch.distributions.Normal(self.mean(code), self.log_spread.exp())


class Steps(NamedTuple):
    """One round as PPO needs it; time first, rows second."""

    code: Tensor
    raw: Tensor
    """Actions before they were squashed: those that were drawn, never drawn again."""
    chance: Tensor
    """Their log-probability when they were drawn."""
    value: Tensor


class PpoExplorer:
    """Acts with the policy, remembers what it drew, and learns after every round."""

    def __init__(self, model: WorldModel, action: ArraySpec, ranks: Ranks, seed: int) -> None:
        self.tracker = Tracker(model)
        self._scale, self._ranks = ActionRange(action), ranks
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.policy = Policy(model.code_size, model.shapes.action_size).to(self.tracker.device)
        self._adam = make_adam(list(self.policy.parameters()), RATE)
        self._rng = torch.Generator()
        self._steps: list[Steps] = []

    def begin(self, seed: int) -> None:
        """Draw from here on as this seed says."""
        self._rng.manual_seed(seed)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over; all rows begin together."""
        self.tracker.reset()
        self._steps = []

    @torch.no_grad()
    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Draw an action for every row."""
        self.tracker.see(obs)
        code = self.tracker.code
        assert code is not None
        gaussian = self.policy.gaussian(code)
        drawn = torch.randn(gaussian.mean.shape, generator=self._rng).to(code.device)
        raw = gaussian.mean + gaussian.stddev * drawn
        chance = gaussian.log_prob(raw).sum(-1)
        self._steps.append(Steps(code, raw, chance, self.policy.value(code)[:, 0]))
        action = torch.tanh(raw)
        self.tracker.did(action)
        return self._scale.to_env(action.cpu().numpy())

    def learn(self, rewards: NDArray) -> dict[str, float]:
        """Improve the policy from the round that was played.

        Args:
            rewards: (T, rows), the answer to every action of the round.
        """
        steps = Steps(*(torch.stack(parts) for parts in zip(*self._steps, strict=True)))
        reward = torch.from_numpy(rewards.astype(np.float32)).to(steps.value.device)
        reward = (reward - reward.mean()) / (reward.std() + 1e-6)
        advantage = advantages(reward, steps.value)
        target = (advantage + steps.value).flatten()
        chosen = [part.flatten(0, 1) for part in (steps.code, steps.raw)]
        chance = steps.chance.flatten()
        advantage = advantage.flatten()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        terms: dict[str, float] = {}
        for _ in range(EPOCHS):
            order = torch.randperm(len(chance), generator=self._rng)
            for part in order.chunk(PARTS):
                terms = self._update(chosen[0][part], chosen[1][part], chance[part],
                                     advantage[part], target[part])  # fmt: skip
        return terms

    def _update(self, code: Tensor, raw: Tensor, chance: Tensor, advantage: Tensor, target: Tensor):
        gaussian = self.policy.gaussian(code)
        # Squashing changes both chances alike: the ratio needs only what was drawn.
        ratio = (gaussian.log_prob(raw).sum(-1) - chance).exp()
        clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
        gain = torch.minimum(ratio * advantage, clipped * advantage).mean()
        value = (self.policy.value(code)[:, 0] - target).square().mean()
        entropy = gaussian.entropy().sum(-1).mean()
        self._adam.zero_grad()
        (-gain + VALUE * value - ENTROPY * entropy).backward()
        self._ranks.average([p.grad for p in self.policy.parameters() if p.grad is not None])
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self._adam.step()
        return {"ppo/value_loss": float(value.detach()), "ppo/entropy": float(entropy.detach()),
                "ppo/ratio": float(ratio.detach().mean())}  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return policy and optimiser."""
        adam = {k: v.cpu().numpy().copy() for k, v in adam_tensors("ppo", self._adam).items()}
        policy = {k: np.array(v) for k, v in flat("policy", self.policy.state_dict()).items()}
        return {"policy": policy, "adam": adam}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        own = {f"policy.{k}": v for k, v in self.policy.state_dict().items()}
        load_exactly(own, state["policy"])
        load_exactly(adam_tensors("ppo", self._adam), state["adam"])


def advantages(reward: Tensor, value: Tensor) -> Tensor:
    """Generalised advantage estimation over (T, rows); the round is cut off, not over."""
    found, carried = torch.zeros_like(reward), torch.zeros_like(reward[0])
    after = value[-1]
    for step in reversed(range(len(reward))):
        error = reward[step] + DISCOUNT * after - value[step]
        carried = error + DISCOUNT * LAMBDA * carried
        found[step], after = carried, value[step]
    return found
