"""DrQ: soft actor-critic on pictures that are shifted at random."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from maniple.agents.augment import random_shift, random_shift_on_device
from maniple.agents.eye import Eye, EyeConfig, pictures_of, states_of
from maniple.agents.sac import SAC, SACConfig
from maniple.core.errors import BadConfig
from maniple.core.spec import Layout
from maniple.core.transitions import Transitions


@dataclass(frozen=True)
class DrQConfig(SACConfig):
    """How the agent learns from pictures."""

    eye: EyeConfig = field(default_factory=EyeConfig)
    """How pictures become features."""

    shift: int = 3
    """Pixels by which pictures are shifted at most."""

    frame_stack: int = 1
    """Pictures that are shown at once."""

    asymmetric: bool = False
    """Critics see the simulator's state instead of pictures: faster, for simulation only. The
    policy sees pictures and the robot's own state either way."""

    state_hint: float = 1.0
    """With critics that see the state: weight of guessing that state from the pictures, which
    teaches the policy's eye where things are."""

    actor_every: int = 2
    """Critic updates for each update of the policy."""


class DrQ(SAC):
    """Sees cameras and the robot's own state."""

    config: DrQConfig

    def _build(self, layout: Layout, sees: tuple[str, ...]) -> None:
        pictures = pictures_of(layout)
        if not pictures:
            raise BadConfig("DrQ learns from pictures: name cameras, as in --env.cameras front.")
        relative = self.config.relative
        self.actor_eye = Eye(layout, sees, pictures, self.config.eye, relative).to(self.device)
        self.critic_eye = self.actor_eye
        if self.config.asymmetric:
            self.critic_eye = Eye(layout, states_of(layout), is_relative=relative).to(self.device)
            self.guess = nn.Linear(self.actor_eye.width, self.critic_eye.width).to(self.device)
        self._build_heads(self.config)
        # The draws of the shifts are the generator's, so that a resumed run goes on exactly.
        self._shift_on_cpu = self.device.type == "cpu"

    def _hint(self, looked: Tensor, features: Tensor) -> Tensor | float:
        if not self.config.asymmetric or self.config.state_hint == 0.0:
            return 0.0
        return self.config.state_hint * (self.guess(looked) - features).square().mean()

    def _actor_eye_parameters(self) -> list[nn.Parameter]:
        hint = self.config.asymmetric and self.config.state_hint > 0.0
        return [*super()._actor_eye_parameters(), *(self.guess.parameters() if hint else ())]

    def _more_modules(self) -> dict[str, nn.Module]:
        return {"guess": self.guess} if self.config.asymmetric else {}

    def _prepare(self, batch: Transitions) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._shift_on_cpu:
            batch = batch._replace(
                obs=self._shifted(batch.obs), next_obs=self._shifted(batch.next_obs)
            )
            return super()._prepare(batch)
        obs, next_obs = super()._prepare(batch)
        for name in self.actor_eye.pictures:
            for seen in (obs, next_obs):
                seen[name] = random_shift_on_device(seen[name], self.config.shift, self._generator)
        return obs, next_obs

    def _shifted(self, obs: dict) -> dict:
        seed = int(torch.randint(2**62, (), generator=self._generator))
        rng = np.random.default_rng(seed)
        moved = {n: random_shift(obs[n], self.config.shift, rng) for n in self.actor_eye.pictures}
        return obs | moved
