"""Observations of anybody's environments: checked, converted where that is harmless."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from maniple.core.step import StepArrays
from maniple.envs import hosted
from maniple.envs.hosted import HostedRecipe

PICTURE = np.full((480, 640, 3), 7, np.uint8)


class Mixed(gymnasium.Env):
    """A picture, a depth, two numbers and a choice, which is told as a plain int."""

    observation_space = spaces.Dict(
        {
            "picture": spaces.Box(0, 255, PICTURE.shape, np.uint8),
            "depth": spaces.Box(0, np.inf, (40, 40), np.float32),
            "numbers": spaces.Box(-1, 1, (2,), np.float32),
            "choice": spaces.Discrete(5),
        }
    )
    action_space = spaces.Box(-1, 1, (1,), np.float32)
    spoilt: dict[str, Any] | None = None

    def _see(self) -> dict[str, Any]:
        seen = {
            "picture": PICTURE,
            "depth": np.full((40, 40), np.inf, np.float32),
            "numbers": np.array([0.5, 3.0], np.float32),
            "choice": 3,
        }
        return seen | (self.spoilt or {})

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Any, dict]:
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        return self._see(), 0.0, False, False, {}


@pytest.fixture
def group():
    made = HostedRecipe(Mixed).group(2, 1)
    contract = made.contract
    made.bind(StepArrays(contract.observation, contract.extras, 2))
    made.reset(np.arange(2), [0, 1])
    made.report()
    yield made
    made.close()


def test_everything_arrives(group) -> None:
    """An infinite depth is no fault, and bounds are the environment's own business."""
    assert group.row_infos() == {}
    arrays = group._out.obs.arrays
    assert (arrays["picture"] == 7).all() and np.isinf(arrays["depth"]).all()
    assert arrays["numbers"].tolist() == [[0.5, 3.0]] * 2
    assert arrays["choice"].tolist() == [3, 3]


def test_only_plain_numbers_are_converted(group, monkeypatch) -> None:
    """A plain int must not have the picture beside it looked at number by number."""
    converted = []
    inner = hosted._converted

    def spy(name, spec, value):
        converted.append(name)
        return inner(name, spec, value)

    monkeypatch.setattr(hosted, "_converted", spy)
    group.step(np.zeros((2, 1), np.float32))
    group.report()
    assert converted == ["choice", "choice"]


def test_the_right_observation_is_named(group) -> None:
    """NaN is in the numbers; the depth's infinity is none of it."""
    group.envs[1].spoilt = {"numbers": np.array([0.5, np.nan], np.float32)}
    group.step(np.zeros((2, 1), np.float32))
    group.report()
    (row,) = group.row_infos().items()
    assert row[0] == 1 and "'numbers' is not finite" in row[1]["env_error"]


@pytest.mark.parametrize(
    ("spoilt", "complaint"),
    [
        ({"numbers": np.zeros(2)}, "has dtype float64; its space says float32"),
        ({"numbers": [0.0, 0.0, 0.0]}, "has shape (3,); its space says (2,)"),
        ({"numbers": [0.0, np.nan]}, "'numbers' is not finite"),
        ({"choice": 2.5}, "does not fit into int64"),
        ({"choice": "2"}, "is no number"),
        ({"picture": PICTURE[:100]}, "has shape (100, 640, 3)"),
        ({"depth": b"0" * 6400}, "is no number"),
    ],
)
def test_broken_promises_are_named(group, spoilt: dict, complaint: str) -> None:
    """Row 0 goes on; row 1 says what was wrong with it."""
    group.envs[1].spoilt = spoilt
    group.step(np.zeros((2, 1), np.float32))
    group.report()
    told = group.row_infos()
    assert list(told) == [1] and complaint in told[1]["env_error"]
    assert group._out.truncated.tolist() == [False, True]
