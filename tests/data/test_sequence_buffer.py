"""Stretches come out as they were played: never across episodes, never from what was evicted."""

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.episode import Episode
from maniple.data.sequence_buffer import SequenceBuffer

LAYOUT = Layout({"at": ArraySpec((1,), np.dtype(np.float64))})
ACTION = ArraySpec((1,), np.dtype(np.float32), -1.0, 1.0)


def episode(number: int, steps: int) -> Episode:
    """Frame t of episode k shows 1000 k + t, and action t is 1000 k + t + 0.5."""
    at = 1000.0 * number + np.arange(steps + 1)
    return Episode({"at": at[:, None]}, (at[:-1, None] + 0.5), np.zeros(steps), False, True, False)


def filled(lengths, capacity=200) -> SequenceBuffer:
    buffer = SequenceBuffer(LAYOUT, ACTION, capacity)
    for number, steps in enumerate(lengths, 1):
        buffer.add(episode(number, steps), source=number % 2)
    return buffer


def check(windows, history, length):
    """Every window is a run of numbers of one episode, with its actions between the frames."""
    for row in range(len(windows.at)):
        frames, actions = windows.obs["at"][row, :, 0], windows.action[row, :, 0]
        assert len({int(f // 1000) for f in frames}) == 1, "one episode only"
        assert (np.diff(frames[history - 1 :]) == 1).all()
        assert (actions[history - 1 :] == frames[history - 1 : -1] + 0.5).all()
        steps = np.diff(frames[:history])
        assert set(steps.tolist()) <= {0.0, 1.0}
        assert (actions[: history - 1][steps == 0] == 0).all(), "no action before the episode"
        assert (windows.age[row] == frames[history - 1 : -1] % 1000).all()


@pytest.mark.parametrize("history", [1, 2, 4])
def test_windows_are_stretches_of_one_episode(history):
    buffer = filled([7, 3, 12])
    check(buffer.sample(500, 3, history), history, 3)


def test_only_named_observations_are_drawn():
    """The same stretches, without what was not asked for."""
    one, other = filled([7, 3, 12]), filled([7, 3, 12])
    whole, bare = one.sample(50, 3, 2), other.sample(50, 3, 2, names=())
    assert not bare.obs and np.array_equal(whole.at, bare.at)
    assert np.array_equal(whole.action, bare.action)


def test_every_place_is_drawn():
    buffer = filled([7, 3, 12])
    assert buffer.count(3) == 5 + 1 + 10
    assert len(np.unique(buffer.sample(2000, 3).at)) == 16


def test_what_was_evicted_is_never_shown():
    buffer = filled([9] * 20, capacity=34)
    windows = buffer.sample(500, 4, 3)
    check(windows, 3, 4)
    assert windows.obs["at"].min() >= 17_000, "the oldest frames were written over"


def test_sources_and_priorities_choose():
    buffer = filled([8, 8, 8, 8])
    drawn = buffer.sample(300, 2, source=1)
    assert {int(v // 1000) for v in drawn.obs["at"].ravel()} == {1, 3}
    starts = buffer.starts(2)
    buffer.prioritise(starts, np.where(starts == starts[5], 1.0, 0.0))
    assert (buffer.sample(50, 2, by_priority=True).at == starts[5]).all()


def test_too_short_episodes_are_told():
    with pytest.raises(BadConfig, match="5 actions in a row"):
        filled([4]).sample(1, 5)


def test_pieces_restore_it():
    """Stored in two pieces and put back, it draws the same stretches."""
    buffer = filled([9, 5])
    pieces = [(buffer.segment(0), 0, buffer.total)]
    since = buffer.total - 1
    buffer.add(episode(3, 12))
    pieces.append((buffer.segment(since), since, buffer.total))
    other = SequenceBuffer(LAYOUT, ACTION, 200)
    for piece, begin, total in pieces:
        other.restore(piece, begin, total)
    other.load_draw_state(buffer.draw_state())
    a, b = buffer.sample(40, 3, 2), other.sample(40, 3, 2)
    assert (a.at == b.at).all() and (a.obs["at"] == b.obs["at"]).all()
    assert (a.action == b.action).all()
