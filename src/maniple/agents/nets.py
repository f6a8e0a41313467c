"""The networks that all agents are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LOG_STD_LOW, LOG_STD_HIGH = -10.0, 2.0
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


class Ensemble(nn.Module):
    """Several equal networks (inputs, 1) evaluated as one batched matrix product.

    Ten critics cost far less than ten times one: the loop over them runs inside the product.
    """

    def __init__(self, members: int, inputs: int, hidden: Sequence[int], norm: bool) -> None:
        super().__init__()
        sizes = [inputs, *hidden, 1]
        self.norm = norm
        self.weights = nn.ParameterList()
        self.biases = nn.ParameterList()
        self.scales = nn.ParameterList()
        self.shifts = nn.ParameterList()
        for n_in, n_out in pairwise(sizes):
            bound = 1 / math.sqrt(n_in)
            self.weights.append(torch.empty(members, n_in, n_out).uniform_(-bound, bound))
            self.biases.append(torch.empty(members, 1, n_out).uniform_(-bound, bound))
        for n_out in hidden if norm else ():
            self.scales.append(torch.ones(members, 1, n_out))
            self.shifts.append(torch.zeros(members, 1, n_out))

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, inputs) to (members, rows)."""
        *weights, last_weight = self.weights
        *biases, last_bias = self.biases
        x = x.expand(last_weight.shape[0], *x.shape)
        for k, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if self.norm:
                x = F.layer_norm(x, x.shape[-1:]) * self.scales[k] + self.shifts[k]
            x = F.relu(x, inplace=True)
        # A matrix product with one column costs a CPU four times this sum, and more backwards.
        return (x * last_weight.transpose(1, 2)).sum(-1) + last_bias.squeeze(-1)


class Policy(nn.Module):
    """A Gaussian over actions, squashed into (-1, 1)."""

    def __init__(self, inputs: int, hidden: Sequence[int], actions: int, norm: bool) -> None:
        super().__init__()
        self.trunk = mlp(inputs, hidden, norm)
        self.head = nn.Linear(hidden[-1], 2 * actions)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log standard deviation before squashing."""
        mean, log_std = self.head(self.trunk(x)).chunk(2, -1)
        return mean, log_std.clamp(LOG_STD_LOW, LOG_STD_HIGH)

    def sample(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions and the log of their density, for standard normal `noise`."""
        mean, log_std = self(x)
        before = mean + log_std.exp() * noise
        # log(1 - tanh(u)^2) in a form that does not lose its digits for large u.
        shrink = 2.0 * (math.log(2.0) - before - F.softplus(-2.0 * before))
        density = -0.5 * noise * noise - log_std - _HALF_LOG_TAU - shrink
        return torch.tanh(before), density.sum(-1)

    def log_prob(self, x: Tensor, actions: Tensor) -> Tensor:
        """Return the log density of given actions in (-1, 1)."""
        mean, log_std = self(x)
        inside = actions.clamp(-1 + 1e-4, 1 - 1e-4)
        before = torch.atanh(inside)
        noise = (before - mean) * (-log_std).exp()
        shrink = torch.log1p(-inside * inside)
        return (-0.5 * noise * noise - log_std - _HALF_LOG_TAU - shrink).sum(-1)


def mlp(inputs: int, hidden: Sequence[int], norm: bool = False) -> nn.Sequential:
    """Linear layers with ReLU between and after, optionally normalised."""
    layers: list[nn.Module] = []
    for n_in, n_out in zip([inputs, *hidden[:-1]], hidden, strict=True):
        layers.append(nn.Linear(n_in, n_out))
        if norm:
            layers.append(nn.LayerNorm(n_out))
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)
