"""Show predictions beside the truth, hiding nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.data.sequence_buffer import SequenceBuffer
from maniple.data.video import Film, save_png
from maniple.world.label import label
from maniple.world.moment import moment_at, true_action
from maniple.world.prediction import WorldModel, rollout
from maniple.world.quality import TRUE_STEPS
from maniple.world.shapes import batch_of

ZOOM = 2
GAP = 4
RED = np.array([200, 0, 0], np.uint8)
FULL_HEAT = 0.35
"""Error that is drawn white; 0 to 1."""
FPS = 10
SHOWN = (1, 3, 5, 8, 10, 15)
"""Steps ahead that a panel shows, where the episode is long enough."""


class Views(NamedTuple):
    """The truth of one episode and two predictions of it, each (K, channels, h, w)."""

    truth: Tensor
    one_step: Tensor
    """Every frame from the true frames before it."""
    open_loop: Tensor
    """Every frame from the model's own frames before it."""

    @property
    def failed(self) -> int:
        """Predicted frames that are not finite numbers."""
        both = torch.stack([self.one_step, self.open_loop])
        return int((~both.isfinite().flatten(2).all(-1)).sum())


@torch.no_grad()
def views_of(model: WorldModel, held_out: SequenceBuffer, number: int) -> Views:
    """Predict one held-out episode, from its fifth frame on, in both ways."""
    module: Any = model
    was_training = module.training
    module.eval()
    begins = [s for s in held_out.starts(TRUE_STEPS + 2) if held_out.arrays["age"][s] == 0]
    start = begins[number % len(begins)]
    length = int(held_out.arrays["left"][start])
    device = next(module.parameters()).device
    windows = held_out.windows(np.array([start]), length, model.history)
    batch = batch_of(windows, model.shapes, device)
    memory = model.warmed(batch, TRUE_STEPS)
    moment = moment_at(batch, TRUE_STEPS, model.history, memory)
    actions = batch.action[:, model.history - 1 + TRUE_STEPS :]
    open_loop = [said.frame[0] for said in rollout(model, moment, actions)]
    one_step = []
    for step in range(TRUE_STEPS, length):
        moment = moment_at(batch, step, model.history, memory)
        action = true_action(batch, step, model.history)
        one_step.append(model.advance(model.begin(moment), action)[0].frame[0])
        memory = model.remember(moment, action)
    module.train(was_training)
    truth = batch.frames[0, model.history + TRUE_STEPS :]
    return Views(truth, torch.stack(one_step), torch.stack(open_loop))


def write_panel(path: Path, views: Views) -> None:
    """Write truth | predicted | error for several steps ahead, one-step beside open-loop."""
    rows = []
    for ahead in [k for k in SHOWN if k <= len(views.truth)]:
        truth = views.truth[ahead - 1]
        cells = []
        for predicted in (views.one_step[ahead - 1], views.open_loop[ahead - 1]):
            cells += [_drawn(truth), _drawn(predicted), _heat(predicted, truth)]
        names = [
            f"{kind} {ahead} ahead"
            for kind in ("true", "one-step", "error", "true", "open", "error")
        ]
        named = [np.concatenate([label(name, cell.shape[1]), cell])
                 for name, cell in zip(names, cells, strict=True)]  # fmt: skip
        rows.append(_beside(named))
    save_png(path, np.concatenate(rows))


def write_video(path: Path, views: Views) -> None:
    """Film truth | one-step | open-loop | error of open loop."""
    with Film(path, FPS) as film:
        for truth, one, free in zip(*views, strict=True):
            cells = [_drawn(truth), _drawn(one), _drawn(free), _heat(free, truth)]
            names = ("truth", "one-step", "open loop", "error")
            named = [np.concatenate([label(n, c.shape[1]), c]) for n, c in
                     zip(names, cells, strict=True)]  # fmt: skip
            film.add(_beside(named))


def _drawn(frame: Tensor) -> NDArray[np.uint8]:
    """Draw all cameras side by side; a failed prediction is red."""
    if not frame.isfinite().all():
        return _zoomed(np.broadcast_to(RED, (*frame.shape[1:], 3)), len(frame) // 3)
    pixels = (frame.clamp(0, 1) * 255).round().to(torch.uint8).movedim(0, -1).cpu().numpy()
    return _zoomed(np.concatenate(np.split(pixels, pixels.shape[-1] // 3, -1), 1))


def _heat(predicted: Tensor, truth: Tensor) -> NDArray[np.uint8]:
    """Draw the error: black is none, then red, yellow, white."""
    if not predicted.isfinite().all():
        return _drawn(predicted)
    error = (predicted - truth).abs().unflatten(0, (-1, 3)).amax(1) / FULL_HEAT
    level = error.clamp(0, 1).cpu().numpy()
    colours = np.stack([np.clip(3 * level - k, 0, 1) for k in range(3)], -1)
    return _zoomed(np.concatenate(list((colours * 255).astype(np.uint8)), 1))


def _zoomed(picture: NDArray[np.uint8], times: int = 1) -> NDArray[np.uint8]:
    wide = np.tile(picture, (1, times, 1))
    return np.repeat(np.repeat(wide, ZOOM, 0), ZOOM, 1)


def _beside(cells: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    gap = np.full((cells[0].shape[0], GAP, 3), 235, np.uint8)
    parts = [part for cell in cells for part in (cell, gap)]
    return np.concatenate(parts[:-1], 1)
