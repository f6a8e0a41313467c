"""Reward an explorer for what its actions showed."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.agents.agent import make_adam
from maniple.core.errors import BadConfig
from maniple.world.config import StudentConfig
from maniple.world.ensemble import Ensemble, disagreement
from maniple.world.moment import Moment
from maniple.world.prediction import WorldModel

TERMS = ("disagreement", "memory_approach", "uncertainty", "raw_error", "action_cost")


class StudentMemory(nn.Module):
    """A memory of the student's own, which learns to hold what the teacher's holds."""

    def __init__(self, code_size: int, action_size: int, memory_size: int) -> None:
        super().__init__()
        self.gru = nn.GRUCell(code_size + action_size, memory_size)

    def forward(self, code: Tensor, action: Tensor, memory: Tensor) -> Tensor:
        """Remember one more step."""
        return self.gru(torch.cat([code, action], -1), memory)


class Rewards:
    """Computes every term after the step, from what was truly seen then."""

    def __init__(self, model: WorldModel, ensemble: Ensemble, config: StudentConfig) -> None:
        self._model, self._ensemble = model, ensemble
        self.weights = {name: getattr(config, name) for name in TERMS}
        self.memory: StudentMemory | None = None
        if config.memory_approach:
            if not model.memory_size:
                raise BadConfig(
                    "memory_approach needs a teacher with a memory: nano, small or base."
                )
            size = model.shapes.action_size
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                self.memory = StudentMemory(model.code_size, size, model.memory_size)
            self.memory = self.memory.to(model.blank_memory(0).device)
            self.optimizer = make_adam(list(self.memory.parameters()), 1e-3)
        self._held: Tensor | None = None
        self._gap: Tensor | None = None

    def reset(self) -> None:
        """An episode begins."""
        self._held = self._gap = None

    def terms(
        self, before: Tensor, code: Tensor, moment: Moment, action: Tensor, after: Moment
    ) -> dict[str, Tensor]:
        """Return every term, (B,), already with its sign but without its weight."""
        model = self._model
        with torch.no_grad():
            heads = self._ensemble(before, code, moment.past[:, -1], action)
            said, _ = model.advance(model.begin(moment), action)
            solved = torch.sigmoid(said.success)
            frame_error = (said.frame - after.now).square().mean((1, 2, 3))
            state_error = (said.state - after.state).square().mean(-1)
            found = {
                "disagreement": disagreement(heads),
                "uncertainty": F.binary_cross_entropy(solved, solved, reduction="none"),
                # A model that does not draw is judged by the states that it tells.
                "raw_error": torch.where(frame_error.isfinite(), frame_error, state_error),
                "action_cost": -action.square().mean(-1),
            }
        return found | {"memory_approach": self._approach(code, action, after)}

    def total(self, terms: dict[str, Tensor]) -> Tensor:
        """Weigh and add up."""
        return torch.stack([self.weights[name] * terms[name] for name in TERMS]).sum(0)

    def _approach(self, code: Tensor, action: Tensor, after: Moment) -> Tensor:
        """How much closer to the teacher's memory the student's came in this step."""
        if self.memory is None:
            return code.new_zeros(len(code))
        held = after.memory.new_zeros(after.memory.shape) if self._held is None else self._held
        held = self.memory(code, action, held)
        gap = (held - after.memory).square().mean(-1)
        self.optimizer.zero_grad()
        gap.mean().backward()
        self.optimizer.step()
        old, now = self._gap, gap.detach()
        self._gap, self._held = now, held.detach()
        return torch.zeros_like(now) if old is None else old - now
