"""Measure what a world model knows, against copying the last frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maniple.data.sequence_buffer import SequenceBuffer
from maniple.world.ensemble import disagreement
from maniple.world.moment import Moment, moment_at
from maniple.world.prediction import WorldModel, rollout
from maniple.world.shapes import Batch, batch_of

HORIZONS = (1, 5, 10, 15)
MOVING = 12 / 255
"""A pixel that differs by more than this from the last true frame is a moving one."""
TRUE_STEPS = 4
"""True steps before a prediction, in which the memory fills."""
IGNORES_BELOW_DB = 0.5
"""A model whose predictions gain less than this from the true actions ignores them."""
ROWS_AT_ONCE = 64


@dataclass(frozen=True)
class HorizonQuality:
    """How well frames are predicted h steps ahead, in dB; pooled over all held-out stretches."""

    h: int
    psnr: float
    psnr_copy: float
    ssim: float
    ssim_copy: float
    moving: float
    """PSNR on moving pixels."""
    moving_copy: float
    moving_shuffled: float
    """The same with the actions of another episode."""
    moving_share: float
    """Part of the pixels that move."""

    @property
    def gain_db(self) -> float:
        """What the model knows more than copying, on moving pixels."""
        return self.moving - self.moving_copy

    @property
    def sensitivity_db(self) -> float:
        """What the true actions are worth."""
        return self.moving - self.moving_shuffled


@dataclass(frozen=True)
class Quality:
    """The honest report of one model on held-out episodes."""

    horizons: list[HorizonQuality]
    spearman: float
    """Rank correlation of the ensemble's disagreement with the true error of the next frame."""
    stretches: int
    failed: int
    """Predictions that held no finite picture."""

    @property
    def ignores_actions(self) -> bool:
        """Whether true actions are worth less than half a decibel at every horizon."""
        return all(row.sensitivity_db < IGNORES_BELOW_DB for row in self.horizons)

    def metrics(self) -> dict[str, float]:
        """Flat numbers for the log."""
        found: dict[str, float] = {"quality/spearman": self.spearman, "quality/failed": self.failed}
        for row in self.horizons:
            found |= {
                f"quality/gain_db_h{row.h}": row.gain_db,
                f"quality/moving_db_h{row.h}": row.moving,
                f"quality/copy_db_h{row.h}": row.moving_copy,
                f"quality/psnr_h{row.h}": row.psnr,
                f"quality/psnr_copy_h{row.h}": row.psnr_copy,
                f"quality/ssim_h{row.h}": row.ssim,
                f"quality/ssim_copy_h{row.h}": row.ssim_copy,
                f"quality/sensitivity_db_h{row.h}": row.sensitivity_db,
            }
        return found


class _Sums:
    """Squared errors and counts of one horizon."""

    def __init__(self) -> None:
        self.all = self.all_copy = self.moving = self.copy = self.shuffled = 0.0
        self.pixels = self.movers = 0.0
        self.ssim: list[float] = []
        self.ssim_copy: list[float] = []


@torch.no_grad()
def measure(
    model: WorldModel, held_out: SequenceBuffer, most: int = 96, horizons: tuple = HORIZONS
) -> Quality:
    """Predict stretches that are spread evenly over the held-out episodes.

    Args:
        most: Stretches that are predicted.
        horizons: Those for which episodes are too short are left out.
    """
    module: Any = model
    was_training = module.training
    module.eval()
    longest = max((h for h in horizons if held_out.count(TRUE_STEPS + h)), default=horizons[0])
    horizons = tuple(h for h in horizons if h <= longest)
    starts = held_out.starts(TRUE_STEPS + longest)
    starts = starts[np.linspace(0, len(starts) - 1, min(most, len(starts))).astype(int)]
    sums, failed = {h: _Sums() for h in horizons}, 0
    doubts, errors = [], []
    device = next(module.parameters()).device
    for begin in range(0, len(starts), ROWS_AT_ONCE):
        windows = held_out.windows(starts[begin : begin + ROWS_AT_ONCE], TRUE_STEPS + longest,
                                   model.history)  # fmt: skip
        batch = batch_of(windows, model.shapes, device)
        failed += _add(model, batch, sums, doubts, errors)
    module.train(was_training)
    rows = [_row(h, found) for h, found in sums.items()]
    return Quality(rows, spearman(np.array(doubts), np.array(errors)), len(starts), failed)


@torch.no_grad()
def code_errors(model: Any, held_out: SequenceBuffer, most: int = 256) -> dict[str, float]:
    """Error of latents that were predicted open loop, as a part of the error of copying them."""
    longest = max((h for h in HORIZONS if held_out.count(h)), default=1)
    starts = held_out.starts(longest)
    starts = starts[np.linspace(0, len(starts) - 1, min(most, len(starts))).astype(int)]
    batch = batch_of(held_out.windows(starts, longest, model.history), model.shapes)
    at = model.begin(moment_at(batch, 0, model.history, model.blank_memory(len(starts))))
    first, found = at.latent, {}
    for ahead in range(1, longest + 1):
        _, at = model.advance(at, batch.action[:, model.history - 2 + ahead])
        if ahead in HORIZONS:
            true = model.encode(batch.frames[:, model.history - 1 + ahead])
            gap, copy = (at.latent - true).square().mean(), (first - true).square().mean()
            found[f"quality/latent_over_copy_h{ahead}"] = float(gap / copy)
    return found


def _add(
    model: WorldModel, batch: Batch, sums: dict[int, _Sums], doubts: list, errors: list
) -> int:
    start = moment_at(batch, TRUE_STEPS, model.history, model.warmed(batch, TRUE_STEPS))
    actions = batch.action[:, model.history - 1 + TRUE_STEPS :]
    shuffled = actions.roll(1, 0)
    true, wrong = rollout(model, start, actions), rollout(model, start, shuffled)
    doubts.extend(doubt(model, start, actions[:, 0]).tolist())
    failed = 0
    for ahead, (said, misled) in enumerate(zip(true, wrong, strict=True), 1):
        frame = batch.frames[:, model.history + TRUE_STEPS + ahead - 1]
        if ahead == 1:
            errors.extend((said.frame - frame).square().mean((1, 2, 3)).tolist())
        failed += int((~said.frame.isfinite().all((1, 2, 3))).sum())
        if ahead in sums:
            _add_horizon(sums[ahead], said.frame, misled.frame, frame, start.now)
    return failed


def _add_horizon(sums: _Sums, said: Tensor, misled: Tensor, true: Tensor, last: Tensor) -> None:
    is_moving = (true - last).abs() > MOVING
    error, copy = (said - true).square(), (last - true).square()
    sums.all += float(error.sum())
    sums.all_copy += float(copy.sum())
    sums.moving += float(error[is_moving].sum())
    sums.copy += float(copy[is_moving].sum())
    sums.shuffled += float((misled - true).square()[is_moving].sum())
    sums.pixels += error.numel()
    sums.movers += float(is_moving.sum())
    sums.ssim.append(_ssim(said, true))
    sums.ssim_copy.append(_ssim(last, true))


def _row(h: int, sums: _Sums) -> HorizonQuality:
    return HorizonQuality(
        h,
        _psnr(sums.all, sums.pixels),
        _psnr(sums.all_copy, sums.pixels),
        float(np.mean(sums.ssim)),
        float(np.mean(sums.ssim_copy)),
        _psnr(sums.moving, sums.movers),
        _psnr(sums.copy, sums.movers),
        _psnr(sums.shuffled, sums.movers),
        sums.movers / max(sums.pixels, 1.0),
    )


def doubt(model: WorldModel, start: Moment, action: Tensor) -> Tensor:
    """How much the ensemble disagrees about the next code, (B,)."""
    # The frame before: everything one step back, its oldest frame shown twice.
    frames = torch.cat([start.frames[:, :1], start.frames[:, :-1]], 1)
    before = model.codes(start._replace(frames=frames))
    return disagreement(model.ensemble(before, model.codes(start), start.past[:, -1], action))


def spearman(a: NDArray, b: NDArray) -> float:
    """Rank correlation; NaN where one of them does not vary."""
    if len(a) < 3 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return float("nan")
    first, second = (np.argsort(np.argsort(x)).astype(float) for x in (a, b))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _psnr(squares: float, count: float) -> float:
    if not count:
        return float("nan")
    return float(-10 * np.log10(max(squares / count, 1e-10)))


def _ssim(a: Tensor, b: Tensor) -> float:
    from torchmetrics.functional.image import structural_similarity_index_measure

    if not a.isfinite().all():
        return float("nan")
    found = structural_similarity_index_measure(a, b, data_range=1.0)
    assert isinstance(found, Tensor)
    return float(found)
