"""The honest report: a copy gains nothing, the truth gains much, a failure is red."""

import av
import numpy as np
import pytest
import torch

from maniple.core.spec import ArraySpec, Layout
from maniple.data.episode import Episode
from maniple.data.sequence_buffer import SequenceBuffer
from maniple.world.ensemble import Ensemble
from maniple.world.panels import Views, write_panel, write_video
from maniple.world.prediction import Prediction
from maniple.world.quality import measure, spearman
from maniple.world.shapes import Shapes

SHAPES = Shapes(("front_rgb",), (), 32, 32, 0, 1)


class Copying(torch.nn.Module):
    """Says that nothing will change, or what the action names."""

    shapes, history, code_size, memory_size, can_draw = SHAPES, 4, 2, 0, True

    def __init__(self, obeys: bool, is_broken: bool = False):
        super().__init__()
        self.ensemble = Ensemble(2, 1, 2)
        self.obeys, self.is_broken = obeys, is_broken

    def blank_memory(self, rows):
        return torch.zeros(rows, 0)

    def warmed(self, batch, steps):
        return self.blank_memory(len(batch.frames))

    def codes(self, moment):
        return moment.now.mean((2, 3))[:, :2]

    def begin(self, moment):
        return moment

    def advance(self, at, action):
        frame = at.now
        if self.obeys:
            frame = action[:, :, None, None].expand_as(at.now)
        if self.is_broken:
            frame = frame * float("nan")
        said = Prediction(frame, at.state, action[:, 0], action[:, 0])
        return said, at.after(action, frame, at.state, at.memory)


def episodes() -> SequenceBuffer:
    """Every frame has the brightness that the action before it named."""
    layout = Layout({"front_rgb": ArraySpec((32, 32, 3), np.dtype(np.uint8), image="rgb")})
    action = ArraySpec((1,), np.dtype(np.float32), 0.0, 1.0)
    buffer, rng = SequenceBuffer(layout, action, 1000), np.random.default_rng(0)
    for _ in range(4):
        actions = rng.random((30, 1)).astype(np.float32)
        shown = np.concatenate([[[0.5]], actions])[:, :, None, None]
        frames = np.broadcast_to((shown * 255).astype(np.uint8), (31, 32, 32, 3))
        buffer.add(Episode({"front_rgb": frames}, actions, np.zeros(30), False, True, False))
    return buffer


def test_copying_gains_nothing():
    quality = measure(Copying(obeys=False), episodes())
    assert [row.h for row in quality.horizons] == [1, 5, 10, 15]
    for row in quality.horizons:
        assert abs(row.gain_db) < 1e-6 and abs(row.sensitivity_db) < 1e-6
    assert quality.ignores_actions


def test_knowing_gains_much():
    quality = measure(Copying(obeys=True), episodes())
    assert min(row.gain_db for row in quality.horizons) > 10
    assert min(row.sensitivity_db for row in quality.horizons) > 10
    assert not quality.ignores_actions and quality.failed == 0


def test_horizons_that_do_not_fit_are_left_out():
    quality = measure(Copying(obeys=True), episodes(), horizons=(1, 5, 200))
    assert [row.h for row in quality.horizons] == [1, 5]


def test_failures_are_counted():
    assert measure(Copying(obeys=False, is_broken=True), episodes()).failed > 0


def test_a_failed_prediction_is_red(tmp_path):
    """Never a copy of the truth."""
    truth = torch.rand(3, 3, 32, 32)
    views = Views(truth, truth.clone(), truth * float("nan"))
    assert views.failed == 3
    write_panel(tmp_path / "p.png", views)
    write_video(tmp_path / "p.mp4", views)
    with av.open(str(tmp_path / "p.png")) as file:
        picture = next(file.decode(video=0)).to_ndarray(format="rgb24")
    red = (picture == [200, 0, 0]).all(-1)
    cells = 64 * 64
    assert red.sum() == 4 * cells, "predicted and error of two steps ahead, and nothing else"
    with av.open(str(tmp_path / "p.mp4")) as file:
        assert len(list(file.decode(video=0))) == 3


def test_spearman():
    assert spearman(np.arange(5), np.arange(5) ** 3) == pytest.approx(1.0)
    assert spearman(np.arange(5), -np.arange(5)) == pytest.approx(-1.0)
    assert np.isnan(spearman(np.zeros(5), np.arange(5)))
