"""What every agent is: it acts for a batch, learns from a batch, and can be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.core.errors import BadConfig, closest
from maniple.core.spec import ArraySpec
from maniple.core.transitions import Transitions

Arrays = dict[str, NDArray]


Sync = Callable[[list[Tensor]], None]
"""Replaces tensors by their mean over all ranks."""
ROWS_AT_ONCE = 16
"""Rows of one forward pass without exploration. A matrix product of another height rounds
differently: with a fixed one a row's action does not depend on how many rows act beside it."""


class Agent(Protocol):
    """Acts and learns. It logs nothing and knows no environment."""

    device: torch.device
    updates: int
    sync: Sync | None
    policy_inputs: tuple[str, ...]
    """The observations that the policy looks at."""

    def act(self, obs: Mapping[str, NDArray], explore: bool = True) -> NDArray[np.float32]: ...
    def calibrate(self, obs: Mapping[str, NDArray]) -> None: ...
    def update(self, batch: Transitions) -> dict[str, float]: ...
    def weights(self) -> Arrays: ...
    def load_weights(self, arrays: Mapping[str, NDArray]) -> None: ...
    def state(self) -> Arrays: ...
    def load_state(self, arrays: Mapping[str, NDArray]) -> None: ...


class ActionRange:
    """Maps the agent's (-1, 1) to the environment's bounds and back."""

    def __init__(self, spec: ArraySpec) -> None:
        low, high = (b.astype(np.float64).ravel() for b in spec.bounds())
        if spec.dtype.kind != "f" or not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise BadConfig(
                f"These agents need bounded real actions, but the task takes {spec.dtype} in "
                f"[{low.min():g}, {high.max():g}]."
            )
        self.size, self._shape, self._dtype = low.size, spec.shape, spec.dtype
        self._low, self._high = low.astype(spec.dtype), high.astype(spec.dtype)
        self._middle, self._half = (high + low) / 2, (high - low) / 2

    def to_env(self, actions: NDArray) -> NDArray:
        """Map (rows, size) to what the environment takes."""
        mapped = (self._middle + self._half * actions).astype(self._dtype)
        return np.clip(mapped, self._low, self._high).reshape(-1, *self._shape)

    def from_env(self, actions: NDArray) -> NDArray[np.float32]:
        """Map what the environment takes to (rows, size)."""
        flat = actions.reshape(len(actions), -1)
        return ((flat - self._middle) / self._half).astype(np.float32)


def as_tensors(obs: Mapping[str, NDArray], names: tuple[str, ...], device: Any) -> dict:
    """Move the named arrays to where the network is."""
    return {name: torch.as_tensor(obs[name], device=device) for name in names}


def in_fixed_batches(
    forward: Callable[[dict[str, Tensor]], Tensor], obs: dict[str, Tensor]
) -> Tensor:
    """Apply `forward` to ROWS_AT_ONCE rows at a time, the last ones filled up with zeros."""
    rows = len(next(iter(obs.values())))
    parts = []
    for start in range(0, rows, ROWS_AT_ONCE):
        part = {name: tensor[start : start + ROWS_AT_ONCE] for name, tensor in obs.items()}
        missing = ROWS_AT_ONCE - min(ROWS_AT_ONCE, rows - start)
        if missing:
            part = {n: torch.cat([t, t.new_zeros(missing, *t.shape[1:])]) for n, t in part.items()}
        parts.append(forward(part))
    return torch.cat(parts)[:rows]


def make_adam(parameters: list, lr: float) -> torch.optim.Optimizer:
    """Make an optimiser whose state is there from the beginning, so that it can be stored."""
    optimizer = torch.optim.Adam(parameters, lr=lr, fused=True)
    for parameter in parameters:
        optimizer.state[parameter] = {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimizer


def adam_tensors(name: str, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Name the tensors of an optimiser's state."""
    states = optimizer.state_dict()["state"].items()
    return {f"adam.{name}.{k}.{key}": value for k, state in states for key, value in state.items()}


def flat(name: str, module_or_state: Mapping[str, Tensor]) -> Arrays:
    """Return a module's tensors as arrays whose names begin with `name`."""
    return {f"{name}.{key}": value.detach().cpu().numpy() for key, value in module_or_state.items()}


def load_exactly(wanted: dict[str, Tensor], given: Mapping[str, NDArray]) -> None:
    """Copy arrays into tensors, refusing anything that does not fit in name or shape.

    Weights that silently stay random are the usual cause of 0 % in evaluation.
    """
    missing, stray = sorted(wanted.keys() - given.keys()), sorted(given.keys() - wanted.keys())
    if missing:
        raise BadConfig(f"These weights lack {missing[0]!r}.{closest(missing[0], stray)}")
    if stray:
        raise BadConfig(f"These weights hold {stray[0]!r}, which this agent does not have.")
    for name, tensor in wanted.items():
        if tuple(tensor.shape) != given[name].shape:
            raise BadConfig(
                f"The weights {name!r} have shape {given[name].shape}; this agent needs "
                f"{tuple(tensor.shape)}. Evaluate with the settings it was trained with."
            )
    with torch.no_grad():
        for name, tensor in wanted.items():
            tensor.copy_(torch.from_numpy(np.array(given[name])))
