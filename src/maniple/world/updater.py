"""Turn batches into weights, on all ranks alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import cos, pi
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maniple.agents.agent import adam_tensors, flat, load_exactly, make_adam
from maniple.core.errors import BadConfig, ManipleError
from maniple.run.ranks import Ranks
from maniple.world.allocator import keep_freed_memory
from maniple.world.prediction import WorldModel
from maniple.world.shapes import Batch

WARM_UPDATES = 50
"""Updates over which the learning rate rises."""
LEAST_RATE = 0.05
"""Part of the learning rate that is left at the end."""
HASHED_AFTER = 2
"""Updates after which the ranks compare their parameters."""


class Updater:
    """Owns the optimiser, and the wrapper through which ranks share gradients.

    Losses are computed by calling the wrapper, never the model: gradients of another call would
    stay on their rank, and the ranks would drift apart.
    """

    def __init__(
        self,
        model: WorldModel,
        weights: Mapping[str, float],
        learning_rate: float,
        ranks: Ranks,
        total: int | None = None,
        accumulation: int = 1,
        precision: str = "no",
        paces: Mapping[str, float] | None = None,
    ) -> None:
        """Prepare training.

        Args:
            weights: Of the terms of the loss.
            total: Updates over which the rate falls; None: it stays.
            accumulation: Batches for one update.
            precision: no, bf16 or fp16.
            paces: Parts of the model that learn so many times faster than the others.
        """
        keep_freed_memory()
        self.model, self.updates = model, 0
        self._weights, self._rate, self._total = dict(weights), learning_rate, total
        self._ranks, self._accumulation = ranks, accumulation
        self._module: Any = model
        self.device = next(self._module.parameters()).device
        if precision == "fp16" and self.device.type == "cpu":
            raise BadConfig("fp16 needs a GPU. On a CPU take --mixed-precision bf16, or no.")
        self._accelerator = _accelerator(self.device, accumulation, precision)
        if self._accelerator.num_processes != ranks.world_size:
            raise ManipleError(
                f"Accelerate sees {self._accelerator.num_processes} ranks, but there are "
                f"{ranks.world_size}. Start them with torchrun."
            )
        self._adam = _paced_adam(self._module, learning_rate, paces or {})
        self._wrapped, self._optimizer = self._accelerator.prepare(model, self._adam)

    def step(self, batches: Iterable[Batch]) -> dict[str, float]:
        """Make one update from as many batches as are accumulated; return the loss's terms."""
        for group in self._adam.param_groups:
            group["lr"] = self._rate * group["pace"] * self._pace()
        terms: dict[str, float] = {}
        self._module.train()
        for number, batch in enumerate(batches):
            with self._accelerator.accumulate(self._wrapped):
                draw = self.updates * self._accumulation + number
                found = self._wrapped(batch, draw)
                loss = torch.stack([self._weights.get(n, 1.0) * v for n, v in found.items()]).sum()
                self._accelerator.backward(loss)
                if self._accelerator.sync_gradients:
                    norm = self._accelerator.clip_grad_norm_(self._module.parameters(), 1.0)
                    terms["gradient_norm"] = float(norm)
                self._optimizer.step()
                self._optimizer.zero_grad()
            terms |= {f"loss/{name}": float(value.detach()) for name, value in found.items()}
            terms["loss"] = float(loss.detach())
        self._module.eval()
        self.updates += 1
        if self.updates == HASHED_AFTER:
            self._ranks.check_equal(f"parameters after {HASHED_AFTER} updates", self.weights())
        if not np.isfinite(terms["loss"]):
            raise ManipleError(
                f"The loss is {terms['loss']} at update {self.updates}. Go on from the last "
                "checkpoint with a smaller --learning-rate."
            )
        return terms

    def _pace(self) -> float:
        """Part of the learning rate that holds now: a rise, then half a cosine down."""
        if self._total is None:
            return min(1.0, (self.updates + 1) / WARM_UPDATES)
        rise = min(1.0, (self.updates + 1) / max(1, min(WARM_UPDATES, self._total // 10)))
        done = min(1.0, self.updates / max(1, self._total))
        return rise * (LEAST_RATE + (1 - LEAST_RATE) * 0.5 * (1 + cos(pi * done)))

    def weights(self) -> dict[str, NDArray]:
        """Return the model's tensors as arrays."""
        return {n: np.array(a) for n, a in flat("model", self._module.state_dict()).items()}

    def state(self) -> dict[str, Any]:
        """Return everything that going on exactly needs."""
        adam = {k: v.cpu().numpy().copy() for k, v in adam_tensors("model", self._adam).items()}
        return {"model": self.weights(), "adam": adam, "updates": self.updates}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.load_weights(state["model"])
        load_exactly(adam_tensors("model", self._adam), state["adam"])
        self.updates = state["updates"]

    def load_weights(self, weights: Mapping[str, NDArray]) -> None:
        """Take the model's tensors over, refusing any that do not fit."""
        own = {f"model.{k}": v for k, v in self._module.state_dict().items()}
        load_exactly(own, weights)

    def forget_momentum(self) -> None:
        """Start the optimiser anew, as after a roll-back."""
        for tensor in adam_tensors("model", self._adam).values():
            tensor.zero_()


def _paced_adam(module: Any, rate: float, paces: Mapping[str, float]) -> torch.optim.Optimizer:
    """Make an optimiser with a group of parameters for every pace."""
    adam = make_adam(list(module.parameters()), rate)
    rest: dict[str, Any] = {**adam.param_groups[0], "pace": 1.0}
    faster = {name: list(module.get_submodule(name).parameters()) for name in paces}
    taken = {id(p) for parameters in faster.values() for p in parameters}
    rest["params"] = [p for p in rest["params"] if id(p) not in taken]
    adam.param_groups[:] = [rest]
    for name, parameters in faster.items():
        adam.add_param_group({"params": parameters, "pace": paces[name]})
    return adam


def _accelerator(device: torch.device, accumulation: int, precision: str) -> Any:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    # It remembers the settings of the last one in this process; ranks stay connected.
    AcceleratorState._reset_state()
    return Accelerator(
        cpu=device.type == "cpu",
        mixed_precision=precision,
        gradient_accumulation_steps=accumulation,
    )
