"""Demonstrations fill half of every batch."""

from __future__ import annotations

import numpy as np
import pytest

from maniple.core.errors import BadConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.data.demo_mix import DemoMix, buffer_of
from maniple.data.episode import Episode
from maniple.data.replay_buffer import ReplayBuffer

LAYOUT = Layout({"mark": ArraySpec((2,), np.dtype(np.float32))})
ACTION = ArraySpec((1,), np.dtype(np.float32), -1, 1)


def episode(number: int, length: int, terminated: bool) -> Episode:
    """An episode whose observations say where they are from."""
    marks = np.stack([np.full(length + 1, number), np.arange(length + 1)], 1).astype(np.float32)
    return Episode(
        {"mark": marks}, np.zeros((length, 1), np.float32), np.ones(length, np.float32),
        terminated=terminated, truncated=not terminated, success=terminated,
    )  # fmt: skip


def test_demonstrations_keep_their_ends():
    """Transitions stay within their episode; only termination ends the future."""
    shown = [episode(1, 5, True), episode(2, 3, False), episode(3, 1, True)]
    batch = buffer_of(shown, LAYOUT, ACTION).sample(600, 0.9)
    number, t = batch.obs["mark"].T
    assert np.array_equal(batch.next_obs["mark"][:, 0], number)
    assert np.array_equal(batch.next_obs["mark"][:, 1], t + 1)
    is_last = ((number == 1) & (t == 4)) | (number == 3)
    assert np.array_equal(batch.discount == 0.0, is_last)
    assert set(zip(number, t, strict=True)) == {
        (n, k) for n, length in ((1, 5), (2, 3), (3, 1)) for k in range(length)
    }


def test_half_of_a_batch_is_demonstrations():
    """The share is exact, not on average."""
    demos = buffer_of([episode(9, 4, True)], LAYOUT, ACTION)
    online = ReplayBuffer(LAYOUT, ACTION, 1, 50)
    online.begin({"mark": np.zeros((1, 2))})
    no = np.zeros(1, bool)
    for _ in range(20):
        online.add(np.zeros((1, 1)), np.zeros(1), no, no, {"mark": np.zeros((1, 2))})
    batch = DemoMix(online, demos).sample(64, 0.9)
    assert (batch.obs["mark"][:32, 0] == 9).all() and (batch.obs["mark"][32:, 0] == 0).all()
    assert batch.shown == 32, "the agent is told which they are"
    assert DemoMix(online).sample(8, 0.9).shown == 0


def test_demonstrations_of_another_task_are_refused():
    """The message says what is there and what is needed."""
    other = Layout({"pose": ArraySpec((7,))})
    with pytest.raises(BadConfig, match="'pose' should have shape"):
        buffer_of([episode(1, 3, True)], other, ACTION)
    with pytest.raises(BadConfig, match="maniple demos record"):
        buffer_of([], LAYOUT, ACTION)


def test_actions_of_another_control_are_refused():
    """Before training begins, and in words."""
    wide = ArraySpec((4,), np.dtype(np.float32), -1, 1)
    with pytest.raises(BadConfig, match=r"actions have shape \(1,\), and it takes \(4,\)"):
        buffer_of([episode(1, 3, True)], LAYOUT, wide)
