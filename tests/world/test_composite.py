"""A frame is put together from the last one, what moved, a still picture, and new paint."""

import torch

from maniple.world.composite import Composite
from maniple.world.config import TeacherConfig
from maniple.world.models import make_model
from maniple.world.moment import first_moment
from maniple.world.scale import Scale
from maniple.world.shapes import Shapes

SIZE = (16, 16)
COPY, MOVED, STILL, PAINT = range(4)


def composite(source: int, cameras: int = 1) -> Composite:
    """One that takes every pixel from one source, whatever the features."""
    made = Composite(8, cameras, SIZE)
    torch.nn.init.zeros_(made.paint.weight)
    with torch.no_grad():
        made.paint.bias.zero_()
        made.paint.bias.view(cameras, 6)[:, :3] = -60.0 if source != COPY else -20.0
        if source != COPY:
            made.paint.bias.view(cameras, 6)[:, source - 1] = 60.0
    return made


def frames(cameras=1):
    return torch.rand(2, 3 * cameras, *SIZE, generator=torch.Generator().manual_seed(0))


def test_every_source_alone():
    features, last = torch.zeros(2, 8, 8, 8), frames(2)
    assert torch.allclose(composite(COPY, 2)(last, features), last, atol=1e-5)
    assert torch.allclose(composite(MOVED, 2)(last, features), last, atol=1e-5)
    still = composite(STILL, 2)
    with torch.no_grad():
        still.still[1] = 10.0
    shown = still(last, features)
    assert torch.allclose(shown[:, :3], torch.full_like(shown[:, :3], 0.5), atol=1e-5)
    assert torch.allclose(shown[:, 3:], torch.ones_like(shown[:, 3:]), atol=1e-5)
    paint = composite(PAINT)(frames(), features)
    assert torch.allclose(paint, torch.full_like(paint, 0.5), atol=1e-5)


def test_flow_fetches_pixels_from_where_they_were():
    """Two pixels to the left and one up, with edges as sharp as they were."""
    moved, last = composite(MOVED), frames()
    with torch.no_grad():
        moved.flow.bias.copy_(torch.tensor([2.0, 1.0]))
    shown = moved(last, torch.zeros(2, 8, 8, 8))
    assert torch.allclose(shown[:, :, :-1, :-2], last[:, :, 1:, 2:], atol=1e-4)


def test_a_new_model_mostly_copies():
    made, last = Composite(8, 1, SIZE), frames()
    shown = made(last, torch.zeros(2, 8, 8, 8))
    assert (shown - last).abs().mean() < 0.5 * (last - 0.5).abs().mean()


def test_what_never_changes_does_not_drift():
    """A goal stays where it is through fifty imagined steps of a model that knows nothing."""
    shapes = Shapes(("front_rgb",), ("tip", "goal"), 32, 32, 4, 2)
    model = make_model(shapes, TeacherConfig(model="nano"), 0).eval()
    states = torch.randn(40, 3, 4)
    states[..., 2:] = states[:, :1, 2:]
    model.calibrate(states)
    memory = model.blank_memory(3)
    at = model.begin(first_moment(torch.rand(3, 3, 32, 32), states[:3, 0], 4, 2, memory))
    for _ in range(50):
        with torch.no_grad():
            said, at = model.advance(at, torch.ones(3, 2))
    assert torch.allclose(said.state[:, 2:], states[:3, 0, 2:], atol=1e-4)
    assert (said.state[:, :2] - states[:3, 0, :2]).abs().max() > 1e-3


def test_errors_are_counted_in_steps():
    scale = Scale(2)
    wave = torch.stack([torch.arange(50.0), torch.arange(50.0) ** 0 * 3], -1)
    scale.fit(wave[None])
    one_step = scale(wave[1]) - scale(wave[0])
    assert torch.allclose(scale.in_steps(one_step), torch.tensor([1.0, 0.0]), atol=1e-3)
    assert scale.step[1] == 0
