"""Behaviour cloning reproduces a simple rule."""

from __future__ import annotations

import numpy as np
import pytest

from maniple.agents.bc import BC, BCConfig
from maniple.core.spec import ArraySpec, Layout
from maniple.core.transitions import Transitions

LAYOUT = Layout({"x": ArraySpec((2,))})
ACTION = ArraySpec((1,), np.dtype(np.float32), -1, 1)


@pytest.mark.parametrize("gaussian", [False, True])
def test_it_imitates(gaussian):
    """What the demonstrations did is what it does."""
    rng = np.random.default_rng(0)
    agent = BC(LAYOUT, ACTION, BCConfig(gaussian=gaussian, hidden=(64, 64)))
    for _ in range(300):
        x = rng.uniform(-1, 1, (128, 2)).astype(np.float32)
        action = 0.7 * np.sin(2 * x[:, :1])
        agent.update(Transitions({"x": x}, action, np.zeros(128), np.zeros(128), {"x": x}))
    x = rng.uniform(-0.9, 0.9, (500, 2)).astype(np.float32)
    error = np.abs(agent.act({"x": x}, explore=False) - 0.7 * np.sin(2 * x[:, :1]))
    assert error.mean() < 0.05
