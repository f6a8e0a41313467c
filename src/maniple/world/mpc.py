"""Explore by planning: go where the ensemble will disagree, and where nobody has been."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.agents.agent import ActionRange
from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec
from maniple.world.cem import CEMConfig, moved_on, plan
from maniple.world.config import StudentConfig
from maniple.world.coverage import Place
from maniple.world.ensemble import Ensemble, disagreement
from maniple.world.familiarity import Familiarity
from maniple.world.prediction import WorldModel
from maniple.world.support import Support
from maniple.world.tracker import Tracker

DRAWN = (1, 8)
REFINED = (2, 4)
"""Iterations of a plan, and steps for which it is followed: with novelty, and without. For
coverage the best plan is followed as it was drawn, since refined plans of all rows end up alike."""


class MpcExplorer:
    """Plans every few steps in the ensemble's own predictions; there is no policy to train."""

    def __init__(
        self,
        model: WorldModel,
        ensemble: Ensemble,
        action: ArraySpec,
        config: StudentConfig,
        place: Place | None = None,
    ) -> None:
        """Prepare an explorer.

        Args:
            place: What of the state says where the robot is; None: all of it counts.
        """
        self.tracker = Tracker(model)
        self.ensemble, self._scale = ensemble, ActionRange(action)
        # Plans are compared: what counts is the other terms' weight beside disagreement's.
        weight = max(config.disagreement, 1e-6)
        self._cost, self._novelty = config.action_cost / weight, config.novelty / weight
        # Novelty is of numbers: pictures of noise are always new.
        known = model.code_size - model.shapes.state_size if model.shapes.state_size else 0
        place = place or Place(tuple(range(model.code_size - known)))
        self._place = [known + number for number in place.numbers]
        size = len(self._place)
        self.familiarity = Familiarity(size, place.fineness) if config.novelty else None
        self._unknown: list[float] = []
        self.constraint = 0.0
        """Weight of keeping plans near what `support` knows."""
        self.support: Support | None = None
        elites = max(2, config.samples // 8)
        iterations, self._followed = DRAWN if config.novelty else REFINED
        self._cem = CEMConfig(config.horizon, config.samples, iterations, elites, takes_best=True)
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
        self._note_codes()
        if self._plan is None:
            size = self.tracker.model.shapes.action_size
            self._plan = moment.state.new_zeros(len(moment.now), self._cem.horizon, size)
        if not self._left:
            self._plan = plan(self._cost_of, self._plan, self._cem, self._rng)
            self._left = min(self._followed, self._cem.horizon)
        action, self._plan = self._plan[:, 0], moved_on(self._plan)
        self._left -= 1
        self.tracker.did(action)
        return self._scale.to_env(action.cpu().numpy())

    def _note_codes(self) -> None:
        """Remember where the rows are, at once: one row need not go where another just was."""
        code = self.tracker.code
        if self.familiarity is not None and code is not None:
            state = code[:, self._place]
            self._unknown.append(float(self.familiarity.unknown(state).mean()))
            self.familiarity.add(state)

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
            gain = gain - self._cost * action.square().mean(-1)
            if self.constraint and self.support is not None:
                gain = gain - self.constraint * self.support.cost(last, action)
            before, code, last = code, heads.mean(0).clamp(-10, 10), action
            if self.familiarity is not None:
                # In logarithms: the last unknown corner counts as much as the first one did.
                unknown = self.familiarity.unknown(code[:, self._place])
                gain = gain + self._novelty * unknown.log()
        return -gain.view(rows, samples)

    def learn(self, rewards: NDArray) -> dict[str, float]:
        """Nothing to learn here: the ensemble learns, and plans follow it."""
        unknown, self._unknown = self._unknown, []
        return {"reward/novelty": float(np.mean(unknown))} if unknown else {}

    def state(self) -> dict[str, Any]:
        """Return what is kept between rounds: where it has been."""
        return {} if self.familiarity is None else self.familiarity.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        if self.familiarity is None:
            return
        if not state:
            raise BadConfig(
                "This run's explorer did not seek new places yet: another version began it. Begin "
                "anew in another folder (--output-dir)."
            )
        self.familiarity.load_state(state)
