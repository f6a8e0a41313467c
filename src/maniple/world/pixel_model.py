"""Predict the next frame as a blend of the last one and a generated one."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maniple.world.composite import Composite
from maniple.world.ensemble import Ensemble
from maniple.world.layers import down, mlp, up
from maniple.world.models import ModelConfig
from maniple.world.moment import Moment, moment_at, true_action
from maniple.world.outcome import Outcome
from maniple.world.prediction import Prediction, rollout
from maniple.world.scale import Scale
from maniple.world.shapes import Batch, Shapes

MOVING = 12 / 255
"""A pixel that differs by more than this moves; the others, copying gets right."""
MOVING_WEIGHT = 12.0
WARM_UP_STEPS = 10
"""Over so many steps of an episode the loss grows to its full weight: memory is empty at first."""


class PixelModel(nn.Module):
    """A small U-net between frames, with a GRU that remembers the episode.

    The state is predicted first; the picture is then drawn knowing where the robot will be.
    """

    def __init__(self, shapes: Shapes, config: ModelConfig) -> None:
        super().__init__()
        self.shapes, self.history = shapes, config.history
        self.warm_steps = config.warm_steps
        width, memory = config.width, config.memory
        self.memory_size, self.code_size = memory, memory + shapes.state_size
        self.scale = Scale(shapes.state_size)
        seen = shapes.channels * config.history
        self.fine = down(seen, width)
        self.middle = down(width, 2 * width)
        self.coarse = down(2 * width, 4 * width)
        self.grid = (shapes.height // 8, shapes.width // 8)
        cells = 4 * width * self.grid[0] * self.grid[1]
        self.look = nn.Sequential(nn.Linear(cells, memory), nn.LayerNorm(memory), nn.Tanh())
        told = 2 * shapes.state_size + shapes.action_size * config.history
        self.gru = nn.GRUCell(memory + told, memory)
        self.walk = nn.Sequential(
            nn.Linear(told, 2 * memory), nn.GELU(),
            nn.Linear(2 * memory, 2 * memory), nn.GELU(),
            nn.Linear(2 * memory, 2 * memory), nn.GELU(), nn.Linear(2 * memory, shapes.state_size),
        )  # fmt: skip
        self.moves = mlp(memory + told, memory, shapes.state_size)
        knows = memory + told + 2 * shapes.state_size
        self.place = nn.Linear(knows, 2 * width * self.grid[0] * self.grid[1])
        self.style = nn.Linear(knows, 14 * width)
        self.mix = nn.Conv2d(6 * width, 4 * width, 3, padding=1)
        self.up_middle = up(4 * width, 2 * width)
        self.join_middle = nn.Conv2d(4 * width, 2 * width, 3, padding=1)
        self.up_fine = up(2 * width, width)
        self.join_fine = nn.Conv2d(2 * width, width, 3, padding=1)
        size = (shapes.height, shapes.width)
        self.composite = Composite(width, len(shapes.cameras), size)
        self.outcome = Outcome(shapes.state_size, memory)
        self.ensemble = Ensemble(self.code_size, shapes.action_size, config.heads)

    @property
    def can_draw(self) -> bool:
        """Whether its predictions can be looked at."""
        return True

    def blank_memory(self, rows: int) -> Tensor:
        """Memory at the beginning of an episode."""
        return self.gru.weight_hh.new_zeros(rows, self.memory_size)

    def calibrate(self, state: Tensor) -> None:
        """Take the scale of the states from data, (N, T, state_size)."""
        self.scale.fit(state)

    def codes(self, moment: Moment) -> Tensor:
        """Describe the present in a few numbers."""
        return self._code(moment.frames, moment.state)

    def remember(self, moment: Moment, action: Tensor) -> Tensor:
        """Return the memory after an action was taken in a true moment."""
        return self._note(self._see(moment.frames)[-1], moment, action)[1]

    def begin(self, moment: Moment) -> Moment:
        """Return where an imagined future starts."""
        return moment

    def advance(self, at: Moment, action: Tensor) -> tuple[Prediction, Moment]:
        """Imagine one step."""
        fine, middle, coarse, code = self._see(at.frames)
        told, memory = self._note(code, at, action)
        known = torch.cat([memory, told], -1)
        # What the body does by itself, learned from many steps, and what memory knows beyond it.
        change = self.walk(told) + self.moves(known)
        # A number that never changes, such as where a goal is, must not drift away.
        scaled = self.scale(at.state) + self.scale.step * change
        # Pixels move by the change, which is a tenth of what states differ by.
        known = torch.cat([known, scaled, change], -1)
        frame = self.composite(at.now, self._decode(fine, middle, coarse, known))
        reward, success = self.outcome(scaled, memory).unbind(-1)
        said = Prediction(frame, self.scale.undo(scaled), reward, success)
        return said, at.after(action, frame, said.state, memory)

    def warmed(self, batch: Batch, steps: int) -> Tensor:
        """Run the memory over the first steps of a batch, as they were."""
        memory = self.blank_memory(len(batch.frames))
        for step in range(steps):
            moment = moment_at(batch, step, self.history, memory)
            memory = self.remember(moment, true_action(batch, step, self.history))
        return memory

    def forward(self, batch: Batch, draw: int) -> dict[str, Tensor]:
        """Return the terms of the loss: open-loop prediction after a few true steps."""
        warm = min(self.warm_steps, batch.reward.shape[1] - 1)
        with torch.no_grad():
            # Back-propagation is cut off here: memory is given, not learned through.
            memory = self.warmed(batch, warm)
        moment = moment_at(batch, warm, self.history, memory)
        terms: dict[str, list[Tensor]] = {}
        actions = batch.action[:, self.history - 1 + warm :]
        for ahead, said in enumerate(rollout(self, moment, actions)):
            for name, term in self._errors(batch, warm + ahead, said, moment.now).items():
                terms.setdefault(name, []).append(term)
        found = {name: torch.stack(values).mean() for name, values in terms.items()}
        return found | self._walk_losses(batch) | {"ensemble": self._ensemble_loss(batch)}

    def _walk_losses(self, batch: Batch) -> dict[str, Tensor]:
        """Errors of single true steps of the states; none where none were drawn."""
        if not batch.walk_state.numel():
            return {}
        after = self.scale(batch.walk_state[:, -1])
        told = self._told(batch.walk_state[:, :-1], batch.walk_action)
        said = self.scale(batch.walk_state[:, -2]) + self.scale.step * self.walk(told)
        return {
            "walk": self.scale.in_steps(said - after).square().mean(),
            "outcome": self.outcome.loss(after, batch.walk_reward, batch.walk_success),
        }

    def _errors(self, batch: Batch, step: int, said: Prediction, start: Tensor) -> dict:
        true, state = batch.frames[:, self.history + step], batch.state[:, self.history + step]
        weight = (0.1 + 0.9 * batch.age[:, step] / WARM_UP_STEPS).clamp_max(1.0)
        is_moving = ((true - start).abs() > MOVING).float()
        error = ((said.frame - true).square() * (1 + MOVING_WEIGHT * is_moving)).mean((1, 2, 3))
        # By the spread of an episode, what one action does would hardly count.
        off = self.scale.in_steps(self.scale(said.state) - self.scale(state)).square().sum(-1)
        off = off / max(1, self.shapes.state_size)
        solved = F.binary_cross_entropy_with_logits(
            said.success, batch.success[:, step], reduction="none"
        )
        return {
            "picture": (weight * error).mean(),
            "state": (weight * off).mean(),
            "reward": (weight * (said.reward - batch.reward[:, step]).square()).mean(),
            "success": (weight * solved).mean(),
        }

    def _ensemble_loss(self, batch: Batch) -> Tensor:
        """Teach the heads one true step, without changing what they look at."""
        size = self.history
        # A few rows are enough for heads that are this small.
        batch = Batch(*(part[::4] for part in batch[:6]))
        with torch.no_grad():
            frames = torch.cat([batch.frames[:, :1], batch.frames], 1)
            before, code, after = (
                self._code(frames[:, k : k + size], batch.state[:, size - 2 + k]) for k in range(3)
            )
        last, action = batch.action[:, size - 2], batch.action[:, size - 1]
        return self.ensemble.loss(before, code, last, action, after)

    def _see(self, frames: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        fine = self.fine(frames.flatten(1, 2) * 2 - 1)
        middle = self.middle(fine)
        coarse = self.coarse(middle)
        return fine, middle, coarse, self.look(coarse.flatten(1))

    def _code(self, frames: Tensor, state: Tensor) -> Tensor:
        return torch.cat([self._see(frames)[-1], self.scale(state)], -1)

    def _note(self, code: Tensor, moment: Moment, action: Tensor) -> tuple[Tensor, Tensor]:
        told = self._told(moment.states, moment.actions(action))
        return told, self.gru(torch.cat([code, told], -1), moment.memory)

    def _told(self, states: Tensor, actions: Tensor) -> Tensor:
        """What numbers tell of a step: the state, how it last changed, and the actions."""
        before, now = self.scale(states[:, -2:]).unbind(1)
        return torch.cat([now, self.scale.in_steps(now - before), actions.flatten(1)], -1)

    def _decode(self, fine: Tensor, middle: Tensor, coarse: Tensor, known: Tensor) -> Tensor:
        place = self.place(known).view(len(known), -1, *self.grid)
        sizes = [2 * part.shape[1] for part in (coarse, middle, fine)]
        styles = self.style(known)[:, :, None, None].split(sizes, 1)
        x = _styled(self.mix(torch.cat([coarse, place], 1)), styles[0])
        x = _styled(self.join_middle(torch.cat([F.gelu(self.up_middle(x)), middle], 1)), styles[1])
        x = _styled(self.join_fine(torch.cat([F.gelu(self.up_fine(x)), fine], 1)), styles[2])
        return x


def _styled(x: Tensor, style: Tensor) -> Tensor:
    """Let what is known turn channels up or down (FiLM)."""
    gain, shift = style.chunk(2, 1)
    return F.gelu(x * (1 + gain) + shift)
