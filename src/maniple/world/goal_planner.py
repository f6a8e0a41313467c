"""Reach a goal picture by planning in a latent world model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.agents.agent import ActionRange
from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec
from maniple.world.cem import CEMConfig, moved_on, plan
from maniple.world.latent_model import LatentModel, LatentMoment
from maniple.world.prediction import WorldModel
from maniple.world.tracker import Tracker

ON_THE_WAY = 0.3
AT_THE_END = 1.5
"""Weights of the distance to the goal during a plan, and at its last step."""


class GoalPlanner:
    """A policy: plans anew at every step towards a picture, or towards predicted reward."""

    def __init__(
        self, model: WorldModel, action: ArraySpec, config: CEMConfig | None = None, seed: int = 0
    ) -> None:
        """Prepare a planner; without `aim` it seeks reward."""
        if not isinstance(model, LatentModel):
            raise BadConfig(
                "Planning needs a latent world model: train one with 'maniple train teacher "
                "--model latent'."
            )
        self._model, self._config = model, config or CEMConfig()
        self._tracker, self._scale = Tracker(model), ActionRange(action)
        self._rng = torch.Generator().manual_seed(seed)
        self._goal: Tensor | None = None
        self._plan: Tensor | None = None

    @torch.no_grad()
    def aim(self, pictures: Mapping[str, NDArray]) -> None:
        """Set the goal of every row: pictures (rows, h, w, 3) of the model's cameras."""
        self._goal = self._model.encode(self._model.shapes.frames(pictures, self._tracker.device))

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over; all rows begin together."""
        self._tracker.reset()
        self._plan = None

    @torch.no_grad()
    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the next action of every row."""
        moment = self._tracker.see(obs)
        start = self._model.begin(moment)
        size = self._model.shapes.action_size
        blank = start.latent.new_zeros(len(start.latent), self._config.horizon, size)
        mean = blank if self._plan is None else moved_on(self._plan)
        self._plan = plan(lambda plans: self._cost(start, plans), mean, self._config, self._rng)
        action = self._plan[:, 0]
        self._tracker.did(action)
        return self._scale.to_env(action.cpu().numpy())

    def _cost(self, start: LatentMoment, plans: Tensor) -> Tensor:
        rows, samples, horizon, size = plans.shape
        at = LatentMoment(*(
            x[:, None].expand(rows, samples, x.shape[-1]).reshape(rows * samples, -1)
            for x in start
        ))  # fmt: skip
        total = plans.new_zeros(rows, samples)
        for step in range(horizon):
            action = plans[:, :, step].reshape(-1, size)
            moved = self._model.move(*at, action)
            at = LatentMoment(at.latent, moved, action)
            weight = AT_THE_END if step == horizon - 1 else ON_THE_WAY
            total = total + weight * self._distance(moved.view(rows, samples, -1))
        return total

    def _distance(self, latents: Tensor) -> Tensor:
        if self._goal is None:
            return -self._model.outcome(latents)[..., 0]
        return (latents - self._goal[:, None]).square().mean(-1)
