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
STATE_WEIGHT = 1.0
"""Of the distance between states that the model tells from latents, beside that of the latents.
Along the camera's view latents hardly differ over ten centimetres; told states do, and a speed
that is not zero keeps an arm from stopping at the goal."""


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
        self._told: Tensor | None = None
        self._numbers = max(1, model.shapes.state_size)
        self._plan: Tensor | None = None

    @torch.no_grad()
    def aim(self, pictures: Mapping[str, NDArray]) -> None:
        """Set the goal of every row: pictures (rows, h, w, 3) of the model's cameras."""
        model = self._model
        self._goal = model.encode(model.shapes.frames(pictures, self._tracker.device))
        # A goal is a place to rest at: the latent before it is the same.
        self._told = model.told(self._goal, self._goal)

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
            total = total + weight * self._distance(at).view(rows, samples)
        return total

    def _distance(self, at: LatentMoment) -> Tensor:
        """How far (rows * samples) moments are from their row's goal."""
        if self._goal is None or self._told is None:
            return -self._model.outcome(at.latent)[..., 0]
        rows = len(self._goal)
        gap = at.latent.view(rows, -1, at.latent.shape[-1]) - self._goal[:, None]
        told = self._model.told(at.before, at.latent).view(rows, gap.shape[1], -1)
        off = (told - self._told[:, None]).square().sum(-1) / self._numbers
        return (gap.square().mean(-1) + STATE_WEIGHT * off).flatten()
