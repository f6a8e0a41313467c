"""Predict in a small latent space that was learned without drawing a picture."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.world.ensemble import Ensemble
from maniple.world.gaussian import BatchStandard, gaussian_loss
from maniple.world.layers import mlp
from maniple.world.models import ModelConfig
from maniple.world.moment import Moment
from maniple.world.prediction import Prediction
from maniple.world.scale import Scale
from maniple.world.shapes import Batch, Shapes


class LatentMoment(NamedTuple):
    """The last two latents and the action between them."""

    before: Tensor
    latent: Tensor
    last: Tensor


class LatentModel(nn.Module):
    """An encoder of frames, and a predictor of how latents change.

    The decoder only lets people look: no gradient goes from it to the rest.
    """

    def __init__(self, shapes: Shapes, config: ModelConfig) -> None:
        super().__init__()
        self.shapes, self.history = shapes, config.history
        self.memory_size, self.code_size = 0, config.latent + shapes.state_size
        size, width, action = config.latent, config.width, shapes.action_size
        self.scale = Scale(shapes.state_size)
        self.grid = (shapes.height // 16, shapes.width // 16)
        cells = 4 * width * self.grid[0] * self.grid[1]
        self.encoder = nn.Sequential(
            nn.Conv2d(shapes.channels, int(1.5 * width), 6, 4, 1), nn.GELU(),
            nn.Conv2d(int(1.5 * width), 3 * width, 4, 2, 1), nn.GELU(),
            nn.Conv2d(3 * width, 4 * width, 3, 2, 1), nn.GELU(), nn.Flatten(),
            nn.Linear(cells, 256), nn.GELU(), nn.Linear(256, size),
        )  # fmt: skip
        self.standard = BatchStandard(size)
        hidden = 256
        self.moves = nn.Sequential(
            nn.Linear(2 * size + 2 * action, hidden), nn.GELU(),
            nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, size),
        )  # fmt: skip
        # From two latents: how fast joints turn is in no single picture.
        self.tell_state = mlp(2 * size, 128, shapes.state_size)
        self.outcome = mlp(size, 128, 2)
        self.ensemble = Ensemble(self.code_size, action, config.heads)
        self.decoder = _decoder(size, width, self.grid, shapes.channels) if config.decoder else None

    @property
    def can_draw(self) -> bool:
        """Whether its predictions can be looked at."""
        return self.decoder is not None

    def calibrate(self, state: Tensor) -> None:
        """Take the scale of the states from data, (N, T, state_size)."""
        self.scale.fit(state)

    def blank_memory(self, rows: int) -> Tensor:
        """Nothing is carried along the episode."""
        return self.standard.mean.new_zeros(rows, 0)

    def encode(self, frames: Tensor) -> Tensor:
        """Turn (B, channels, h, w) into (B, latent)."""
        return self.standard(self.encoder(frames * 2 - 1))

    def codes(self, moment: Moment) -> Tensor:
        """Describe the present in a few numbers."""
        return torch.cat([self.encode(moment.now), self.scale(moment.state)], -1)

    def move(self, before: Tensor, latent: Tensor, last: Tensor, action: Tensor) -> Tensor:
        """Predict the next latent."""
        seen = torch.cat([latent, latent - before, last, action], -1)
        return latent + self.moves(seen)

    def remember(self, moment: Moment, action: Tensor) -> Tensor:
        """Two frames are all that it remembers."""
        return moment.memory

    def begin(self, moment: Moment) -> LatentMoment:
        """Return where an imagined future starts."""
        before, latent = self.encode(moment.frames[:, -2]), self.encode(moment.now)
        return LatentMoment(before, latent, moment.past[:, -1])

    def advance(self, at: LatentMoment, action: Tensor) -> tuple[Prediction, LatentMoment]:
        """Imagine one step, in latents; the frame is drawn only for people."""
        latent = self.move(*at, action)
        return self._say(at.latent, latent), LatentMoment(at.latent, latent, action)

    def warmed(self, batch: Batch, steps: int) -> Tensor:
        """Nothing is carried along the episode."""
        return self.blank_memory(len(batch.frames))

    def forward(self, batch: Batch, draw: int) -> dict[str, Tensor]:
        """Return the terms of the loss: latents predicted over the whole stretch."""
        first = self.history - 2
        frames = batch.frames[:, first:]
        latents = self.encode(frames.flatten(0, 1)).view(*frames.shape[:2], -1)
        action = batch.action[:, first:]
        before, latent, off = latents[:, 0], latents[:, 1], []
        for step in range(1, action.shape[1]):
            moved = self.move(before, latent, action[:, step - 1], action[:, step])
            before, latent = latent, moved
            off.append((moved - latents[:, step + 1]).square().mean())
        return {
            "latent": torch.stack(off).mean(),
            "gaussian": gaussian_loss(latents[:, 1:].flatten(0, 1), draw),
            **self._told(batch, latents[:, 1:-1], latents[:, 2:]),
            "ensemble": self._ensemble_loss(batch, latents.detach()),
            **self._drawn(frames, latents.detach(), draw),
        }

    def _ensemble_loss(self, batch: Batch, latents: Tensor) -> Tensor:
        """Teach the heads one true step, without changing what they look at."""
        first = self.history - 2
        state = self.scale(batch.state[:, first : first + 3])
        before, code, after = torch.cat([latents[:, :3], state], -1).unbind(1)
        last, action = batch.action[:, first], batch.action[:, first + 1]
        return self.ensemble.loss(before, code, last, action, after)

    def told(self, before: Tensor, latents: Tensor) -> Tensor:
        """Tell the scaled state from a latent and the one before it."""
        return self.tell_state(torch.cat([latents, latents - before], -1))

    def _told(self, batch: Batch, before: Tensor, latents: Tensor) -> dict[str, Tensor]:
        """Errors of the heads that read latents.

        Only the state changes them: where the robot is must be told apart to the centimetre, and
        a background that nothing in an episode changes is not what latents are for.
        """
        state = self.scale(batch.state[:, self.history :])
        reward, success = self.outcome(latents.detach()).unbind(-1)
        return {
            "state": (self.told(before, latents) - state).square().sum() / max(1, state.numel()),
            "reward": (reward - batch.reward).square().mean(),
            "success": F.binary_cross_entropy_with_logits(success, batch.success),
        }

    def _drawn(self, frames: Tensor, latents: Tensor, draw: int) -> dict[str, Tensor]:
        if self.decoder is None:
            return {}
        # One frame of every stretch is enough to learn to draw.
        step = draw % frames.shape[1]
        shown = torch.sigmoid(self.decoder(latents[:, step]))
        return {"picture": (shown - frames[:, step]).square().mean()}

    def _say(self, before: Tensor, latent: Tensor) -> Prediction:
        size = (len(latent), self.shapes.channels, self.shapes.height, self.shapes.width)
        drawn = latent.new_full(size, float("nan"))
        if self.decoder is not None:
            drawn = torch.sigmoid(self.decoder(latent))
        state = self.scale.undo(self.told(before, latent))
        reward, success = self.outcome(latent).unbind(-1)
        return Prediction(drawn, state, reward, success)


def _decoder(size: int, width: int, grid: tuple[int, int], channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(size, 4 * width * grid[0] * grid[1]),
        nn.Unflatten(1, (4 * width, *grid)), nn.GELU(),
        nn.ConvTranspose2d(4 * width, 3 * width, 4, 2, 1), nn.GELU(),
        nn.ConvTranspose2d(3 * width, 2 * width, 4, 2, 1), nn.GELU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.GELU(),
        nn.ConvTranspose2d(width, channels, 4, 2, 1),
    )  # fmt: skip
