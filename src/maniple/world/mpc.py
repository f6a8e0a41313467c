"""Explore by planning: go where the ensemble will disagree most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.agents.agent import ActionRange
from maniple.core.spec import ArraySpec
from maniple.world.cem import CEMConfig, moved_on, plan
from maniple.world.config import StudentConfig
from maniple.world.ensemble import Ensemble, disagreement
from maniple.world.prediction import WorldModel
from maniple.world.support import Support
from maniple.world.tracker import Tracker

REPLANNED_EVERY = 4
"""Steps for which a plan is followed."""


class MpcExplorer:
    """Plans every few steps in the ensemble's own predictions; there is no policy to train."""

    def __init__(
        self, model: WorldModel, ensemble: Ensemble, action: ArraySpec, config: StudentConfig
    ) -> None:
        self.tracker = Tracker(model)
        self.ensemble, self._scale = ensemble, ActionRange(action)
        self._weight, self._cost = config.disagreement, config.action_cost
        self.constraint = 0.0
        """Weight of keeping plans near what `support` knows."""
        self.support: Support | None = None
        elites = max(2, config.samples // 8)
        self._cem = CEMConfig(config.horizon, config.samples, 2, elites, takes_best=True)
        self._rng = torch.Generator()
        self._plan: Tensor | None = None
        self._left = 0

    def begin(self, seed: int) -> None:
        """Draw from here on as this seed says."""
        self._rng.manual_seed(seed)

    def reset(self, rows: NDArray[np.bool_]) -> None:
        """Start over; all rows begin together."""
        self.tracker.reset()
        self._plan, self._left = None, 0

    @torch.no_grad()
    def act(self, obs: Mapping[str, NDArray]) -> NDArray:
        """Return the next action of every row."""
        moment = self.tracker.see(obs)
        if self._plan is None:
            size = self.tracker.model.shapes.action_size
            self._plan = moment.state.new_zeros(len(moment.now), self._cem.horizon, size)
        if not self._left:
            self._plan = plan(self._cost_of, self._plan, self._cem, self._rng)
            self._left = min(REPLANNED_EVERY, self._cem.horizon)
        action, self._plan = self._plan[:, 0], moved_on(self._plan)
        self._left -= 1
        self.tracker.did(action)
        return self._scale.to_env(action.cpu().numpy())

    def _cost_of(self, plans: Tensor) -> Tensor:
        rows, samples, horizon, size = plans.shape
        repeated = lambda x: x[:, None].expand(rows, samples, -1).reshape(rows * samples, -1)  # noqa: E731
        assert self.tracker.before is not None and self.tracker.code is not None
        before, code = repeated(self.tracker.before), repeated(self.tracker.code)
        last = repeated(self.tracker.last)
        gain = plans.new_zeros(rows * samples)
        for step in range(horizon):
            action = plans[:, :, step].reshape(-1, size)
            heads = self.ensemble(before, code, last, action)
            # Far from the data heads explode; what counts is the order of plans.
            gain = gain + torch.log1p(100.0 * disagreement(heads))
            gain = gain - self._cost * action.square().mean(-1) / max(self._weight, 1e-6)
            if self.constraint and self.support is not None:
                gain = gain - self.constraint * self.support.cost(last, action)
            before, code, last = code, heads.mean(0).clamp(-10, 10), action
        return -gain.view(rows, samples)

    def learn(self, rewards: NDArray) -> dict[str, float]:
        """Nothing to learn here: the ensemble learns, and plans follow it."""
        return {}

    def state(self) -> dict[str, Any]:
        """Nothing is kept between rounds."""
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""
